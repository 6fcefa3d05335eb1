#!/usr/bin/env python3
"""Shows that simulations bite: plants bugs in a copy of the sources, one at a time, and runs seeds until one fails.

    mutations.py [--seeds N] [--only NAME] [SOURCES]
    mutations.py --fit [SOURCES]      only looks whether each bug still fits the sources

Seeds are those of ps/test/relocation_schedule_test.c, then of the swarm; between them a worker crashes at every fifth
message (tests/sim/boundaries.c). Each bug is what one rule of the protocol (ps/README.md) or of retrying and consistency forbids, planted together with
the removal of whatever else would hide it. The copy is made and built in a temporary directory; SOURCES are not
touched. Exit status 1 when a bug survives N seeds (3000: all but two of them fail within 2000), or no longer fits the sources.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

MOVES, REQUESTS, ROUNDS = "ps/src/moves.c", "ps/src/requests.c", "ps/src/rounds.c"
COPIES, BACKUP, PLACEMENT = "ps/src/copies.c", "ps/src/backup.c", "ps/src/placement.c"
CLIENT, ROUTES = "ps/src/client.c", "ps/src/client_routes.c"
SERVER, WORKER, NODE = "ps/src/server.c", "job/src/worker.c", "job/src/node.c"
WORKER_BATCHES = "job/src/worker_batches.c"
AGENT, COMMAND, BOOKS, MEMBERSHIP = "job/src/agent.c", "job/src/command.c", "job/src/books.c", "job/src/membership.c"
RUNTIME, STATE, LEFT = "job/src/runtime_generations.c", "job/src/runtime_state.c", "job/src/left.c"
BATCHES, LEND_ROWS = "ps/src/server_batches.c", "ps/src/server_lend_rows.c"

# name: what it is, [(file, text, instead)]
BUGS = {
    "kept_forgotten": ("rows of batches prepared for another push_aggregation are not trained", [
        (WORKER_BATCHES, "    node->kept_count += count;\n    count = 0;\n", "    node->kept_count = 0;\n    count = 0;\n"),
    ]),
    "push_after_seal": ("a sealed partition goes on applying pushes", [
        (REQUESTS, "            answer_sealed(server, slot, frame);\n        else\n            tti_server_answer_moved(server, slot, frame);\n",
         "            answer_sealed(server, slot, frame);\n        else\n            apply_here(server, slot, frame, payload);\n"),
    ]),
    "records_stay": ("sequence records do not travel in the sealed header", [
        (MOVES, "            memcpy(&slot->sequence[n], records + n * sizeof(uint64_t), sizeof(uint64_t));\n", ""),
    ]),
    "steps_stay": ("the optimiser's step count does not travel in the sealed header", [
        (MOVES, "    slot->partition->steps = seal.steps;\n", ""),
    ]),
    "before_header": ("requests are served before the sealed header is in", [
        (MOVES, "    if (!slot->arrival.header_in) {\n        tti_server_hold(server, slot, frame, payload, 0);\n        return;\n    }\n", ""),
    ]),
    "push_in_part": ("a push is applied to the keys that are here already", [
        (MOVES, "    if (missing > 0) {\n        if (!slot->fetched", "    if (missing > 0 && frame->kind == TT_FRAME_PULL) {\n        if (!slot->fetched"),
    ]),
    "pull_in_part": ("a pull is answered before all its keys are here", [
        (MOVES, "    if (missing > 0) {\n        if (!slot->fetched", "    if (missing > 0 && frame->kind == TT_FRAME_PUSH) {\n        if (!slot->fetched"),
    ]),
    "installed_twice": ("an original that comes again replaces what was updated since", [
        (MOVES, "    if (slot->arrival.present != NULL && is_here(slot, key))\n        return;\n", ""),
    ]),
    "freed_when_sent": ("the old owner frees a partition when it has sent everything", [
        (MOVES, "    while (drain_piece(server, slot) && slot->drains)\n        ; // as many pieces as the partition has\n",
         "    while (drain_piece(server, slot) && slot->drains)\n        ;\n    tt_frame done = move_frame(server, slot, TT_FRAME_COMPLETE);\n"
         "    if (slot->departure.drained)\n        tti_server_handle_complete(server, slot, &done);\n"),
    ]),
    "complete_too_soon": ("the new owner says complete with its header alone", [
        (MOVES, "    if (slot->state != TTI_ARRIVING || !slot->arrival.header_in ||\n        slot->arrival.installed < slot->arrival.key_count)\n",
         "    if (slot->state != TTI_ARRIVING || !slot->arrival.header_in)\n"),
    ]),
    "applied_twice": ("a push that was applied is applied again when it is asked again", [
        (REQUESTS, "    if (frame->sequence <= slot->sequence[frame->sender] || is_in(server, slot, frame)) {\n",
         "    if (is_in(server, slot, frame)) {\n"),
    ]),
    "never_again": ("nobody sends again what had no answer", [
        (CLIENT, "        if (request->state != TTI_REQUEST_SENT || client->now_ns - request->sent_ns < retry_ns)\n", "        if (retry_ns > 0)\n"),
    ]),
    "old_answers": ("answers to an earlier pull are taken for this one's", [
        (CLIENT, "        frame->sequence != client->operation_number || frame->count", "        frame->count"),
    ]),
    "order_of_arrival": ("slices of a round are summed as they come", [
        (ROUNDS, "&round->slice[slice]", "&round->slice[round->arrived]"),
    ]),
    "seal_in_a_round": ("a partition leaves in the middle of a round", [
        (SERVER, "        if (slot->round < view->effective_round || slot->collecting.arrived > 0)\n", "        if (slot->round + 1 < view->effective_round)\n"),
    ]),
    "batches_kept": ("a worker keeps slices it prepared when they are dealt out anew", [
        (NODE, "    else if (node->working)\n        tti_worker_rewind(node, view->effective_round);\n", ""),
    ]),
    "rows_forgotten": ("a worker that becomes a server forgets the rows it had taken", [
        (LEFT, "    return_rows(rt, rows, account->trained, account->granted, &account->again);\n", ""),
    ]),
    "dead_is_heard": ("what a dead process still sends counts", [
        (SERVER, "    if (frame->attempt < server->attempts[frame->sender])\n", "    if (frame->attempt > UINT32_MAX - 1)\n"),
    ]),
    "records_of_the_dead": ("a new process's pushes are judged by what its predecessor sent", [
        (SERVER, "            slot->sequence[n] = tti_sequence_base(slot->restored_at);\n            slot->clock[n] = 0;\n", ""),
    ]),
    "numbers_go_on": ("pushes to a restored partition are not numbered anew", [
        (ROUTES, "    route->sequence = tti_sequence_base(restored_at);\n", ""),
    ]),
    "the_dead_are_asked": ("a worker that adopts a generation asks a dead server for what it gave away", [
        (ROUTES, "first || route->drains || view->is_gone[view->previous[p]];", "first || route->drains;"),
        (ROUTES, "!is_gone(client, view, route->pull_from) &&\n", "\n"),
    ]),
    "rows_of_the_dead": ("what a dead worker had taken and not trained is forgotten", [
        (LEFT, "    return_rows(rt, left->rows + (begun - first), begun, end, &left->again);\n", ""),
    ]),
    "begun_counts_twice": ("a batch that a dead worker had begun is done again where it is in, too", [
        (BATCHES, "    return is_again(pushed, frame) && slot->batches != NULL &&", "    return is_again(pushed, frame) && slot->batches == NULL &&"),
    ]),
    "begun_is_fresh": ("what a dead worker had begun is anybody's, as if it were in nowhere", [
        (LEFT, "    begun = TT_MAX(begun, done);\n", "    begun = done;\n"),
    ]),
    "before_it_is_fresh": ("what a dead worker had trained and not told of is trained again", [
        (LEFT, "        done = begun - TT_MIN((uint64_t)left->batch.rows, begun);\n", "        done = first;\n"),
        (LEFT, "        if (done < first) // of which a part was heard: all of it is in\n            done = begun;\n", ""),
    ]),
    "batches_stay": ("which batches are in does not travel in the sealed header", [
        (MOVES, "    if (bytes == with)\n", "    if (bytes > with)\n"),
    ]),
    "serves_what_is_lent": ("what was lent is changed before it is taken", [
        (LEND_ROWS, "    loan->is_out = 1;\n", "    loan->is_out = 1;\n    slot->partition->cells.w[0] += 1;\n"),
    ]),
    "takes_the_dead": ("what could not be read under its guard is taken all the same", [
        (LEND_ROWS, "    if (!is_taken)\n        clear_arrays(slot, rows);\n", "    is_taken = 1;\n"),
    ]),
    "half_taken": ("what could not be read stays where rows are made later", [
        (LEND_ROWS, "    if (!is_taken)\n        clear_arrays(slot, rows);\n",
         "    if (!is_taken)\n        memset(slot->partition->cells.w, 1, rows * sizeof(float));\n"),
    ]),
    "lent_without_state": ("the optimiser's state is not taken", [
        (LEND_ROWS, "    for (int i = 0; i < TTI_ROW_ARRAYS; i++) {\n        size_t row_bytes;\n        void *array = tti_partition_array(slot->partition, i, &row_bytes);\n        if (array != NULL && !tt",
         "    for (int i = 0; i < TTI_ROW_ARRAYS; i += 4) {\n        size_t row_bytes;\n        void *array = tti_partition_array(slot->partition, i, &row_bytes);\n        if (array != NULL && !tt"),
    ]),
    "never_offered_again": ("an offer that was lost is not repeated, nor asked for", [
        (MOVES, "        server->table->consistency != TT_PS_BSP && ++slot->ticks % 4 == 0)\n        tti_server_send_offer(server, slot);\n",
         "        server->table->consistency != TT_PS_BSP && ++slot->ticks % 4 == 0)\n        slot->news = 0;\n"),
        (MOVES, "        tti_server_fetch_seal(server, slot, slot->partition->row_capacity);\n        return;\n", "        return;\n"),
    ]),
    "batches_uncopied": ("nor with a copy", [
        (BACKUP, "    if (batches != NULL)\n        tti_server_install_batches(server, slot, batches);\n", ""),
    ]),
    "unnamed_to_backups": ("a backup is not told which batch a push is of", [
        (BACKUP, "        tti_server_apply_copy(server, slot, &bare, payload + sizeof *push))\n",
         "        (server->pushed.batch.rows = 0, tti_server_apply_copy(server, slot, &bare, payload + sizeof *push)))\n"),
    ]),
    "back_too_soon": ("a worker is back before what it had begun is done again", [
        (MEMBERSHIP, "                     rt->books.left[n].state == TTI_LEFT_NOTHING;\n", "                     rt->books.left[n].state <= TTI_LEFT_BEGUN;\n"),
        (COMMAND, "    TT_ASSERT(done); // who has left something has not come back (deal_roles)\n", "    (void)done;\n"),
    ]),
    "saved_half": ("a checkpoint is taken while a batch is in at some partitions only", [
        (STATE, "        if (tti_runtime_is_whole(rt))\n            return 1;\n", "        if (rt != NULL)\n            return 1;\n"),
    ]),
    "again_unentered": ("the journal does not say who does a dead worker's batch again", [
        (BOOKS, "    enter(rt, ENTRY_TAKE_AGAIN, n, whose, 0, 0);\n", ""),
    ]),
    "clock_untold": ("nobody tells a restored partition his clock", [
        (NODE, "    node->clock_unknown |= node->working && died && consistency == TT_PS_SSP;\n", ""),
    ]),
    "rest_of_before": ("a worker that rests counts as resting although it has to go back first", [
        (MEMBERSHIP, "    tti_runtime_call_to_rest(rt); // who rests may have to go back first\n", ""),
    ]),
    "slice_twice": ("a slice that is in counts again", [
        (REQUESTS, "    if (server->table->consistency != TT_PS_BSP)\n        return 0;\n    return frame->clock < slot->round ||",
         "    if (server->table->consistency != TT_PS_BSP || frame->clock < UINT32_MAX)\n        return 0;\n    return frame->clock < slot->round ||"),
    ]),
    "past_is_now": ("who does a dead worker's slice again gets the parameters of now", [
        (REQUESTS, "    tti_past_restore(past, slot->partition, rows, out.count, values);\n", ""),
    ]),
    "ahead_of_the_news": ("a server acts on a message of a generation that it has not heard of", [
        (SERVER, "        wait_for_view(server, frame, payload);\n        return;\n", ""),
    ]),
    "gate_behind_the_news": ("an agent obeys orders of a generation that it does not know", [
        (AGENT, "        (parts->generation == NULL && known < order->generation))\n", "        order->generation == UINT32_MAX)\n"),
    ]),
    "gate_unheard": ("the master chooses a round before all workers know that the gate is closed", [
        (RUNTIME, "    while (!all_heard_the_gate(rt) &&", "    while (!all_heard_the_gate(rt) && rt->board.gate == 0 &&"),
    ]),
    "news_at_the_gate": ("roles are dealt out anew although somebody died while the gate was being closed", [
        (MEMBERSHIP, "    if (tti_runtime_close_gate(rt) && tti_runtime_settled(rt))\n", "    if (tti_runtime_close_gate(rt))\n"),
    ]),
    "said_once": ("an agent says once what it has measured", [
        (AGENT, "    report->record_first = all ? backlog->record_first : backlog->record_sent;\n",
         "    report->record_first = all ? backlog->record_sent : backlog->record_sent;\n"),
    ]),
    "rows_sent_once": ("rows that did not arrive are not sent again", [
        (COMMAND, "        reach->rows_sent = reach->rows_heard;\n", "        ;\n"),
    ]),
    "joins_at_zero": ("a process that joins begins its partitions at zero", [
        (NODE, "    if (joins) {\n", "    if (joins && first == NULL) {\n"),
    ]),
    "rest_before_the_records": ("a worker is thought at rest before all it has trained is known", [
        (COMMAND, "    standing->resting = complete ? report->resting : 0;\n", "    standing->resting = report->resting;\n"),
    ]),
    "restored_twice": ("the state of a checkpoint that comes again replaces what was trained since", [
        ("ps/src/state_frames.c", "    if (slot->state != TTI_ARRIVING || !slot->arrival.restores ||\n        frame->attempt",
         "    if (slot->partition == NULL ||\n        frame->attempt"),
    ]),
    "slices_of_the_dead": ("nobody goes back for a dead worker's slices", [
        (WORKER, "    node->round = view->redo_from;\n", "    node->round = next;\n"),
    ]),
    "acknowledged_alone": ("a push is acknowledged before the backup has it", [
        (COPIES, "    if (!tti_copies_wait(slot)) {\n", "    if (slot != NULL) {\n"),
    ]),
    "copied_with_gaps": ("a backup applies a push although one before it is missing", [
        (BACKUP, "frame->sequence == copies->number + 1;", "frame->sequence > copies->number;"),
        (BACKUP, "        copies->number++;\n", "        copies->number = frame->sequence;\n"),
    ]),
    "copied_without_records": ("a copy comes without its owner's sequence records", [
        (BACKUP, "    tti_server_install_records(server, slot, records);\n", ""),
    ]),
    "heir_without_a_copy": ("a backup is made the owner before it is known to have a copy", [
        (PLACEMENT, "is_there(next, view->backup[p]) && is_backed != NULL && is_backed[p])", "is_there(next, view->backup[p]) && is_backed != NULL)"),
    ]),
    "copied_without_the_round": ("a copy comes without the contributions to the open round", [
        (COPIES, "    tti_round_save(&slot->collecting, server->table->slice_count, slot->partition->width, out);\n",
         "    const tti_round none = {0};\n    tti_round_save(&none, server->table->slice_count, slot->partition->width, out);\n"),
    ]),
    "dead_backups_are_waited_for": ("a server that waits for a backup does not look whether it has died", [
        (SERVER, " || newest->lost_at > server->view->lost_at)", ")"),
    ]),
    "dead_owners_are_heard": ("a worker that is told of a way to the dead takes it", [
        (CLIENT, "    tti_route_by_the_newest(client, route, frame);\n", ""),
    ]),
    "rows_unentered": ("a master does not leave to its successor which rows it has given out", [
        (BOOKS, "    enter(rt, ENTRY_TAKE, n, unit, 0, 0);\n", ""),
    ]),
    "rows_back_unentered": ("nor which have come back", [
        (BOOKS, "    enter(rt, ENTRY_TAKE_BACK, n, 0, 0, 0);\n", ""),
    ]),
    "records_unentered": ("nor what it has heard was trained", [
        (BOOKS, "    enter(rt, ENTRY_RECORD, n, record->examples, slice, (uint32_t)record->sequence);\n", ""),
    ]),
    "ends_unentered": ("nor which moves have ended", [
        (BOOKS, "    enter_pieces(rt, pieces, 2);\n", "    TT_UNUSED(pieces);\n"),
    ]),
    "generation_unentered": ("nor the generation in force", [
        (RUNTIME, "    tti_books_enter_generation(rt);\n", ""),
    ]),
    "orders_from_one": ("a successor's orders are numbered from the beginning", [
        (COMMAND, "        rt->command.nodes[n].last.number = (uint64_t)(rt->books.masters - 1) << 40;\n", "        (void)n;\n"),
    ]),
    "sealed_alone": ("a sealed partition acknowledges what only it has", [
        (MOVES, "    slot->departure.by_copy = tti_ps_view", "    tti_copies_clear(&slot->copies);\n    slot->departure.by_copy = tti_ps_view"),
    ]),
}


PROGRAMS = ("relocation_schedule_test", "boundaries", "swarm")


def command(arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)


def copy_of(sources, target):
    files = command(["git", "-C", sources, "ls-files", "-z"]).stdout.split("\0")
    for name in filter(None, files):
        where = os.path.join(target, name)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        shutil.copy2(os.path.join(sources, name), where)


def build(tree):
    done = command(["cmake", "--build", os.path.join(tree, "build"), "-j2", "--target", *PROGRAMS])
    if done.returncode != 0:
        sys.exit(f"it does not build:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def verdict(arguments, what, timeout=600, **environment):
    """How a program fails, or None."""
    try:
        done = command(arguments, timeout=timeout, env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return f"{what}: no end"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines()
             if any(word in line for word in (" fails: ", "ERROR: ", " is a bug in ", "crash, from"))]
    return f"{what}: {lines[0].strip()[:160] if lines else f'exit status {done.returncode}'}"


def first_failure(tree, seeds, chunk=50):
    """Where and how it fails first; None when all pass."""
    schedules, boundaries, swarm = (os.path.join(tree, "build", "test-bin", name) for name in PROGRAMS)
    found = verdict([schedules], f"schedules 1..{seeds}", TT_SEEDS=str(seeds)) or verdict([boundaries, "5"], "boundaries")
    for first in range(1, seeds + 1, chunk):
        found = found or verdict([swarm, str(first), str(min(chunk, seeds + 1 - first))],
                                 f"swarm {first}..{first + chunk - 1}")
    return found


def plant(tree, changes):
    """Returns what undoes it; exits when a change does not fit."""
    before = {}
    for name, text, instead in changes:
        path = os.path.join(tree, name)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        before.setdefault(path, source)
        if source.count(text) != 1:
            for undone, kept in before.items():
                with open(undone, "w", encoding="utf-8") as file:
                    file.write(kept)
            return None
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace(text, instead))
    return before


def unfit(sources):
    """Names of the bugs whose texts do not occur exactly once in the sources."""
    def count(name, text):
        with open(os.path.join(sources, name), encoding="utf-8") as file:
            return file.read().count(text)
    return [name for name, (_, changes) in BUGS.items() if any(count(*change[:2]) != 1 for change in changes)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=3000)
    parser.add_argument("--only", choices=sorted(BUGS))
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("sources", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    options = parser.parse_args()
    if options.fit:
        misfits = unfit(options.sources)
        print(f"{len(BUGS)} bugs, {len(misfits)} do not fit the sources any more: {' '.join(misfits)}".rstrip(": "))
        return len(misfits) > 0
    survived = 0
    with tempfile.TemporaryDirectory(prefix="trimtab-mutations-") as tree:
        copy_of(os.path.abspath(options.sources), tree)
        done = command(["cmake", "-S", tree, "-B", os.path.join(tree, "build"), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"])
        if done.returncode != 0:
            sys.exit(done.stderr)
        build(tree)
        if options.only is None:
            found = first_failure(tree, 100)
            print(f"{'nothing planted':20} {found or '100 seeds pass'}", flush=True)
            survived += found is not None
        for name, (what, changes) in BUGS.items():
            if options.only not in (None, name):
                continue
            before = plant(tree, changes)
            if before is None:
                print(f"{name:20} does not fit the sources any more: {what}", flush=True)
                survived += 1
                continue
            began = time.monotonic()
            build(tree)
            found = first_failure(tree, options.seeds)
            survived += found is None
            print(f"{name:20} {found or f'SURVIVES {options.seeds} seeds'}   ({what}; {time.monotonic() - began:.0f} s)", flush=True)
            for path, source in before.items():
                with open(path, "w", encoding="utf-8") as file:
                    file.write(source)
    print(f"{len(BUGS) if options.only is None else 1} bugs planted, {survived} survived")
    return survived > 0


if __name__ == "__main__":
    sys.exit(main())
