/* SPDX-License-Identifier: Apache-2.0 */
/* Large messages between two ranks that share memory (docs/decisions/0015-matched-messages.md): the record of a send, in
 * which its two ends meet. MESSAGES sends use one record after the other, and each message has PIECES pieces. The
 * receiver copies alone, shares the copy, or asks for staged pieces (there is room for one); it may destroy a receive that
 * it shares. The sender may destroy its send as long as it has not ended.
 *
 * Proved for every interleaving: what is received is what was sent, unless the send was withdrawn; nobody writes into a
 * receive that has ended; a send ends only after its bytes were read; nobody waits forever. The ways to break it, each
 * found by Spin:
 *   NO_GENERATION   the phase of an earlier use of the record is taken for this one's
 *   NO_WAIT         a receive is destroyed without waiting for the pieces that its sender has begun
 *   EARLY_REUSE     the record of a withdrawn send is used again before its receiver is done with it
 *   LATE_LOOK       the receiver looks for the withdrawal after it has counted the staged pieces */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef PIECES
#define PIECES 2
#endif
#define OVERWRITTEN 99

mtype = { announced, shared, staging, received };

chan ring = [2] of { byte };    /* announcements, by generation */

/* The record. */
byte generation = 0;
mtype phase = announced;
byte next = 0, sender_pieces = 0, staged = 0, read = 0;
bool withdrawn = false;

byte source = 0;      /* what the send's buffer holds: its generation */
byte place = 0;       /* the staging area */
byte target[PIECES];  /* the receive's buffer */
byte open_for = 0;    /* the receive that has not ended, by generation */
bool gone[MESSAGES + 1];       /* withdrawn sends */
bool told[MESSAGES + 1];       /* of these: the receiver has been informed */
bool all_staged[MESSAGES + 1];

#ifdef NO_GENERATION
#define PHASE_IS(g, p) (phase == p)
#else
#define PHASE_IS(g, p) (generation == g && phase == p)
#endif

inline set(g, p) { atomic { generation = g; phase = p } }

proctype sender() {
    byte g = 1, i = 0, n = 0;
    do
    :: g <= MESSAGES ->
        source = g;
        sender_pieces = 0;
        staged = 0;
        withdrawn = false;
        ring!g;
        do
        :: PHASE_IS(g, received) -> break
        :: PHASE_IS(g, shared) && next < PIECES ->
            n = 0;
            do
            :: atomic { i = next; next = next + 1 };
               if
               :: i < PIECES ->
                   assert(open_for == g);
                   target[i] = source;
                   n++
               :: else -> break
               fi
            od;
            sender_pieces = sender_pieces + n
        :: PHASE_IS(g, staging) && staged < PIECES && staged < read + 1 ->
            place = source;
            all_staged[g] = staged + 1 == PIECES;
            staged = staged + 1
        :: !PHASE_IS(g, received) -> /* the request is destroyed */
            atomic { gone[g] = true; withdrawn = true };
            told[g] = true;
#ifndef EARLY_REUSE
            PHASE_IS(g, received);
#endif
            break
        od;
        source = OVERWRITTEN;
        g++
    :: else -> break
    od
}

/* Takes pieces until none is left. */
inline share() {
    do
    :: atomic { i = next; next = next + 1 };
       if
       :: i < PIECES ->
           target[i] = source;
           done++
       :: else -> break
       fi
    od
}

proctype receiver() {
    byte g, i, done, taken, count;
    bool whole, given_up;
    do
    :: ring?g ->
        done = 0;
        whole = true;
        open_for = g;
        if
        :: i = 0; /* alone */
           do
           :: i < PIECES -> target[i] = source; i++
           :: else -> break
           od
        :: next = 0;
           set(g, shared);
           if
           :: share();
              (done + sender_pieces >= PIECES)
           :: true -> /* the receive is destroyed */
              whole = false;
              atomic { taken = next; next = PIECES };
#ifndef NO_WAIT
              (sender_pieces >= (taken < PIECES -> taken : PIECES))
#endif
           fi
        :: read = 0;
           set(g, staging);
           do
           :: done == PIECES -> break
           :: else ->
#ifdef LATE_LOOK
               count = staged;
               given_up = withdrawn;
#else
               given_up = withdrawn;
               count = staged;
#endif
               do
               :: done < count -> target[done] = place; done++; read = done
               :: else -> break
               od;
               if
               :: done == PIECES -> break
               :: else ->
                   if
                   :: given_up -> assert(!all_staged[g]); whole = false; break
                   :: else -> (staged > done || withdrawn)
                   fi
               fi
           od
        :: told[g] -> whole = false /* no receive meets the message */
        fi;
        i = 0;
        do
        :: i < PIECES -> assert(!whole || gone[g] || target[i] == g); i++
        :: else -> break
        od;
        open_for = 0;
        i = 0;
        do
        :: i < PIECES -> target[i] = 0; i++
        :: else -> break
        od;
        set(g, received);
        if
        :: g == MESSAGES -> break
        :: else -> skip
        fi
    od
}

init {
    atomic { run sender(); run receiver() }
}
