/* SPDX-License-Identifier: Apache-2.0 */
/* Faces that both ends copy (docs/decisions/0049-joint-copies.md), between two ranks that exchange EPOCHS times, each a
 * sender and a receiver. A message has PIECES pieces; a counter deals them out. Offers lie in halves by parity. A rank
 * writes its field again as soon as its exchange is finished. Rank 0 may leave between start and finish, and then writes
 * its field at once; a rank that waits for one that left leaves, too.
 *
 * Proved for every interleaving: an exchange that ends well has all pieces of its epoch; nobody waits forever. The ways
 * to break it, each found by Spin:
 *   ONE_HALF          offers of all epochs lie in one place: a piece is taken for an epoch that is over
 *   EARLY_REUSE       the sender does not wait for the pieces that its receiver took
 *   LOOK_BEFORE_COPY  the receiver looks for the epoch while it holds a piece
 *   TRUST_THE_LEAVER  the receiver does not ask whether the sender left while it copied */
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef PIECES
#define PIECES 2
#endif
#define OVERWRITTEN 99

#define SLOT(to, k) (2 * (to) + (k) % 2)
#ifdef ONE_HALF
#define HALF(to, k) (2 * (to))
#else
#define HALF(to, k) SLOT(to, k)
#endif

byte field[2];           /* by rank: what it sends */
byte offered[4];         /* by half, at the receiver: epoch; written by the sender */
byte next[4];            /* by half: the next piece */
byte copied[2];          /* by receiver: pieces, in all epochs */
byte flag[4];            /* by slot: the epoch that has arrived */
byte end_of[2];          /* by receiver: the first epoch that will not come; 0: none yet */
byte slot[4 * PIECES];   /* values */

/* Takes pieces of what rank `from` sends in epoch k to rank `to`, until none is left. */
inline take(from, to) {
    n = 0;
    do
    :: atomic { i = next[HALF(to, k)]; next[HALF(to, k)] = i + 1 };
       if
       :: i < PIECES ->
#ifdef LOOK_BEFORE_COPY
           if
           :: from != me && flag[SLOT(me, k)] == k -> n++; break /* it seems to be here */
           :: else -> skip
           fi;
#endif
           value = field[from];
           slot[SLOT(to, k) * PIECES + i] = value;
           n++
       :: else -> break
       fi
    od
}

proctype rank(byte me) {
    byte k = 1, i = 0, n = 0, value = 0, lent = 0, last = 0;
    bool spoilt = false;

    do
    :: k <= EPOCHS ->
        field[me] = k;
        next[HALF(1 - me, k)] = 0; /* start */
        offered[HALF(1 - me, k)] = k;
        take(me, 1 - me);
        lent = lent + PIECES - n;
        flag[SLOT(1 - me, k)] = k;
        last = k;
        if /* leave before finish? */
        :: me == 0 -> goto farewell
        :: true -> skip
        fi;
        do /* finish */
        :: offered[HALF(me, k)] == k ->
            take(1 - me, me);
            if
#ifndef TRUST_THE_LEAVER
            :: n > 0 && end_of[me] != 0 -> spoilt = true
#endif
            :: else -> skip
            fi;
            copied[me] = copied[me] + n;
            break
        :: flag[SLOT(me, k)] == k -> break
        :: end_of[me] != 0 && end_of[me] <= k -> break
        od;
        (flag[SLOT(me, k)] == k || (end_of[me] != 0 && end_of[me] <= k));
        if
        :: spoilt || flag[SLOT(me, k)] != k -> goto farewell
        :: else -> skip
        fi;
#ifndef EARLY_REUSE
        /* A peer that has left holds no piece. */
        (copied[1 - me] >= lent);
#endif
        i = 0; /* the ghosts are read */
        do
        :: i < PIECES -> assert(slot[SLOT(me, k) * PIECES + i] == k); i++
        :: else -> break
        od;
        k++
    :: else -> break
    od;

farewell:
    end_of[1 - me] = last + 1;
    if
    :: k <= EPOCHS -> field[me] = OVERWRITTEN
    :: else -> skip
    fi
}

init {
    atomic { run rank(0); run rank(1) }
}
