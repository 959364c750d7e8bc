/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that has no message under way and waits for something else looks at its bell alone, not at its peers
 * (docs/decisions/0015-matched-messages.md). Here it waits for a peer that first sends MESSAGES messages, more than there
 * is room for, and rings after each attempt that found no room.
 *
 * Proved for every interleaving: nobody waits forever, whether the bell is answered before the messages are taken or
 * after. The ways to break it, each found by Spin:
 *   SILENT      no bell
 *   RING_ONCE   the peer rings only after the first attempt for a message, and the bell is answered last */
#ifndef MESSAGES
#define MESSAGES 5
#endif
#define ROOM 2

byte there = 0; /* messages in the ring */
bit rung = 0, sum = 0;

proctype peer() {
    byte sent = 0;
    bool rang = false;
    bit seen;
    do
    :: sent < MESSAGES ->
        if
        :: there < ROOM -> atomic { there++; sent++ }; rang = false
        :: else ->
#ifndef SILENT
#ifdef RING_ONCE
            if
            :: rang -> (there < ROOM)
            :: else ->
#endif
                seen = rung;
                if
                :: seen == 0 -> rung = 1
                :: else -> skip
                fi;
                rang = true;
#ifdef RING_ONCE
            fi;
            (there < ROOM)
#else
            (there < ROOM || rung == 0) /* other attempts change nothing */
#endif
#else
            (there < ROOM)
#endif
        fi
    :: else -> break
    od;
    sum = 1
}

proctype waiting() {
    bool first;
    do
    :: sum == 1 -> break
    :: rung == 1 ->
#ifdef RING_ONCE
        first = false;
#else
        if
        :: first = true
        :: first = false
        fi;
#endif
        if
        :: first -> rung = 0
        :: else -> skip
        fi;
        do
        :: there > 0 -> there--
        :: there == 0 -> break
        od;
        if
        :: first -> skip
        :: else -> rung = 0
        fi
    od
}

init {
    atomic { run peer(); run waiting() }
}
