/* SPDX-License-Identifier: Apache-2.0 */
/* Appended ghosts (docs/architecture.md): two slots per direction, no message that says "free". RANKS in a ring, EPOCHS
 * exchanges each; on two ranks both neighbours are the same one. Rank 0 may leave before any exchange, and a rank that
 * waits for one that left leaves, too. Payloads are written and read in two steps, so that a torn one would be seen.
 *
 * Proved for every interleaving: ghosts of k are the sender's of k until this rank starts k + 1; a wait ends badly only
 * if the message was never sent; nobody waits forever. The ways to break it, each found by Spin:
 *   ONE_SLOT            one slot instead of two
 *   FLAG_FIRST          the epoch is published before the payload is there
 *   SILENT_DIRECTION    a direction without data sends no flag either
 *   FAREWELL_IN_HEADER  the farewell takes the place of the next epoch in the control line */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef EPOCHS
#define EPOCHS 4
#endif
#define LINES (2 * RANKS)
#define FAREWELL 255

/* Direction 0: to the right, arriving in line 0 of the right neighbour; 1: to the left, into line 1 of the left one. */
#define OUT(me, d) ((d) == 0 -> 2 * ((me + 1) % RANKS) : 2 * ((me + RANKS - 1) % RANKS) + 1)
#define IN(me, d) (2 * (me) + (d))
#define HALF(line, k) (2 * (line) + (k) % 2)
#ifdef ONE_SLOT
#define SLOT(line, k) (2 * (line))
#else
#define SLOT(line, k) HALF(line, k)
#endif
#ifdef SILENT_DIRECTION
#define DIRECTIONS 1
#else
#define DIRECTIONS 2
#endif

byte header[2 * LINES];   /* epoch of each half of a control line */
byte low[2 * LINES];      /* the payload */
byte high[2 * LINES];
byte end_of[LINES];       /* first epoch that will not come; 0: none yet */
byte sent[LINES];         /* for the proof only: the last epoch published into a line */

inline send(line) {
#ifdef FLAG_FIRST
    header[HALF(line, k)] = k;
#endif
    low[SLOT(line, k)] = k;
    high[SLOT(line, k)] = k;
#ifndef FLAG_FIRST
    atomic { header[HALF(line, k)] = k; sent[line] = k }
#endif
}

proctype rank(byte me) {
    byte k = 1, d = 0, last = 0, line = 0;

    do
    :: k <= EPOCHS ->
        if /* leave early? */
        :: me == 0 -> goto farewell
        :: true -> skip
        fi;
        d = 0; /* start */
        do
        :: d < DIRECTIONS -> line = OUT(me, d); send(line); d++
        :: else -> break
        od;
        last = k;
        d = 0; /* finish */
        do
        :: d < DIRECTIONS ->
            line = IN(me, d);
            (header[HALF(line, k)] >= k || (end_of[line] != 0 && end_of[line] <= k));
            if
            :: header[HALF(line, k)] == k -> d++
            :: else -> assert(sent[line] < k); goto farewell
            fi
        :: else -> break
        od;
        d = 0; /* the ghosts are read */
        do
        :: d < DIRECTIONS ->
            line = IN(me, d);
            assert(low[SLOT(line, k)] == k);
            assert(high[SLOT(line, k)] == k);
            d++
        :: else -> break
        od;
        k++
    :: else -> break
    od;

farewell:
    d = 0;
    do
    :: d < DIRECTIONS ->
        line = OUT(me, d);
#ifdef FAREWELL_IN_HEADER
        header[HALF(line, last + 1)] = FAREWELL;
#else
        end_of[line] = last + 1;
#endif
        d++
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
