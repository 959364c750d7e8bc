/* SPDX-License-Identifier: Apache-2.0 */
/* Padded ghosts (docs/architecture.md): one copy of the target. The receiver publishes "free k" in start(k), when it has
 * read its ghosts of k - 1; the sender copies once it sees that, in start or, if it comes later, while it finishes.
 * RANKS in a ring, EPOCHS exchanges each; on two ranks both neighbours are the same one.
 *
 * Proved for every interleaving: ghosts of k are the sender's of k until this rank starts k + 1; nobody waits forever.
 * The ways to break it, each found by Spin:
 *   NO_FREE         the sender does not wait for "free"
 *   FREE_TOO_EARLY  the receiver publishes it before it has read its ghosts
 *   BLOCKING        the sender waits for "free" before it publishes its own: a cycle of waits
 *
 * SLOTTED: in each epoch a sender may put its message into one of two slots instead, at once, from which the receiver
 * copies it. Ways to break that:
 *   ONE_SLOT        all epochs have the same slot
 *   ONE_LABEL       whether a message lies in a slot is said in one place for all epochs */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#define LINES (2 * RANKS)

/* Direction 0: to the right, arriving in line 0 of the right neighbour; 1: to the left, into line 1 of the left one. */
#define OUT(me, d) ((d) == 0 -> 2 * ((me + 1) % RANKS) : 2 * ((me + RANKS - 1) % RANKS) + 1)
#define IN(me, d) (2 * (me) + (d))

byte free_until[LINES]; /* the receiver's word of each line: the last epoch it is ready for */
byte arrived[LINES];    /* the sender's */
byte low[LINES];        /* the payload: ghost sites of a field */
byte high[LINES];

#ifdef SLOTTED
#ifdef ONE_SLOT
#define SLOT(line) (2 * (line))
#else
#define SLOT(line) (2 * (line) + k % 2)
#endif
#ifdef ONE_LABEL
#define LABEL(line) (2 * (line))
#else
#define LABEL(line) (2 * (line) + k % 2)
#endif
byte slot[2 * LINES];
bool in_slot[2 * LINES]; /* in the label of a message */

inline may_put_into_slot(d) {
    if
    :: true ->
        slot[SLOT(OUT(me, d))] = k;
        in_slot[LABEL(OUT(me, d))] = true;
        arrived[OUT(me, d)] = k;
        copied[d] = true
    :: true
    fi
}
inline take_out_of_slot(d) {
    if
    :: in_slot[LABEL(IN(me, d))] ->
        low[IN(me, d)] = slot[SLOT(IN(me, d))];
        high[IN(me, d)] = slot[SLOT(IN(me, d))]
    :: else
    fi
}
#endif

#ifdef NO_FREE
#define MAY_WRITE(line) true
#else
#define MAY_WRITE(line) (free_until[line] >= k)
#endif

inline copy(d) {
    low[OUT(me, d)] = k;
    high[OUT(me, d)] = k;
#ifdef SLOTTED
    in_slot[LABEL(OUT(me, d))] = false;
#endif
    arrived[OUT(me, d)] = k;
    copied[d] = true
}
inline read_ghosts(epoch) {
    assert(low[IN(me, 0)] == epoch && low[IN(me, 1)] == epoch);
    assert(high[IN(me, 0)] == epoch && high[IN(me, 1)] == epoch)
}

proctype rank(byte me) {
    byte k = 1;
    bool copied[2];

    do
    :: k <= EPOCHS ->
        copied[0] = false;
        copied[1] = false;
#ifdef BLOCKING
        MAY_WRITE(OUT(me, 0)); copy(0);
        MAY_WRITE(OUT(me, 1)); copy(1);
#endif
        free_until[IN(me, 0)] = k;
        free_until[IN(me, 1)] = k;
#ifdef SLOTTED
        may_put_into_slot(0);
        may_put_into_slot(1);
#endif
        do /* both copies, in the order in which the targets become free, then both arrivals */
        :: !copied[0] && MAY_WRITE(OUT(me, 0)) -> copy(0)
        :: !copied[1] && MAY_WRITE(OUT(me, 1)) -> copy(1)
        :: copied[0] && copied[1] && arrived[IN(me, 0)] >= k && arrived[IN(me, 1)] >= k -> break
        od;
#ifdef SLOTTED
        take_out_of_slot(0);
        take_out_of_slot(1);
#endif
#ifdef FREE_TOO_EARLY
        free_until[IN(me, 0)] = k + 1;
#endif
        read_ghosts(k);
        k++
    :: else -> break
    od
}

init {
    byte r = 0;
    atomic {
        do
        :: r < RANKS -> run rank(r); r++
        :: else -> break
        od
    }
}
