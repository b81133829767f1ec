"""Every defence of a desk is watched by a test that fails without it: ``python -m searches desk_defences``.

The rows are those of the threat model's table. Of each defence there is the line that makes it, that line without it,
and the test that then fails: in a copy of the package, which is not the one that is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parent.parent


class Defence(NamedTuple):
    """A line that stands against an attack, the line without it, and the test that misses it."""

    attack: str
    file: str
    line: str
    without: str
    test: str


DEFENCES = (
    Defence(
        "time of a query",
        "desk/clock.py",
        "return next((wait for wait in self.leaving_times if taken <= wait), self.deadline)",
        "return taken",
        "test_clock.py::test_what_is_ready_within_a_tick_leaves_at_its_end",
    ),
    Defence(
        "time of a query",
        "desk/service.py",
        "await sleep(max(0.0, leaves - time.monotonic()))",
        "pass",
        "test_clock.py::test_the_answer_and_its_worker_wait_for_the_tick",
    ),
    Defence(
        "time of a query",
        "desk/service.py",
        "if self.has_not_left(asking.number) else asking",
        "if False else asking",
        "test_clock.py::test_no_address_tells_of_an_answer_before_its_tick",
    ),
    Defence(
        "time of a query",
        "desk/questions.py",
        "            refuse_long_work(query.rows)\n",
        "",
        "test_questions.py::test_no_question_takes_long_at_one_row_alone",
    ),
    Defence(
        "late answers",
        "desk/workers.py",
        "if not self._pipe.poll(max(0.0, until - time.monotonic())):",
        "if not self._pipe.poll(100.0):",
        "test_worker.py::test_a_question_beyond_the_deadline_is_ended",
    ),
    Defence(
        "refunds",
        "desk/service.py",
        'self.state.move(asking, "running", "withheld", answer=charge.entry)',
        "self.state.forget(asking)",
        "test_service.py::test_a_worker_that_dies_after_the_charge_costs_the_charge_and_says_so",
    ),
    Defence(
        "a second draw",
        "desk/charging.py",
        ", asked=asked, key=asking.key)",
        ", asked=asked)",
        "test_service.py::test_a_state_that_was_restored_from_a_copy_gives_no_second_draw",
    ),
    Defence(
        "a second draw",
        "desk/service.py",
        "if known is not None and known.digest != question.digest(person.name):",
        "if False:",
        "test_service.py::test_another_question_under_a_known_key_is_refused",
    ),
    Defence(
        "reading before the charge",
        "desk/worker.py",
        'if _receive(self._pipe) != {"go": True}:',
        "if not _receive(self._pipe):",
        "test_worker.py::test_a_worker_reads_nothing_that_was_not_charged",
    ),
    Defence(
        "errors as a channel",
        "desk/server.py",
        '"Something unexpected failed at the desk."',
        "str(error)",
        "test_server.py::test_an_unexpected_failure_says_nothing_of_itself",
    ),
    Defence(
        "errors as a channel",
        "desk/worker.py",
        'return {"failed": payer.was_charged}',
        "raise",
        "test_worker.py::test_what_fails_in_a_worker_says_nothing",
    ),
    Defence(
        "a question without privacy",
        "desk/questions.py",
        'choice("call", self.call, known)',
        "pass",
        "test_questions.py::test_a_step_calls_nothing_but_the_builder",
    ),
    Defence(
        "another price than was worked out",
        "desk/charging.py",
        '!= stated or wanted["reproducible"]',
        "is None",
        "test_worker.py::test_a_source_that_prices_otherwise_is_charged_nothing",
    ),
    Defence(
        "row counts and sizes",
        "desk/public_tables.py",
        '"spelled": name in source.spelled}',
        '"spelled": name in source.spelled, "rows": len(source.frame)}',
        "test_service.py::test_what_is_public_does_not_depend_on_the_records",
    ),
    Defence(
        "a fresh budget",
        "desk/sources.py",
        "if other not in (None, dataset.book):",
        "if False:",
        "test_service.py::test_the_same_source_under_another_book_is_no_fresh_budget",
    ),
    Defence(
        "a fresh budget",
        "desk/sources.py",
        "if before not in (None, now) and state.fact(word) is None:",
        "if False:",
        "test_service.py::test_a_source_that_changed_needs_the_owners_word",
    ),
    Defence(
        "a fresh budget",
        "desk/configuration.py",
        "for place in (each.place, *_files_of(each))):",
        "for place in (each.name,)):",
        "test_configuration.py::test_one_source_has_one_book",
    ),
    Defence(
        "a fresh budget",
        "desk/workers.py",
        "if worker.start() != self._start:",
        "if not worker.start():",
        "test_worker.py::test_a_source_that_changed_is_not_read_by_the_next_worker",
    ),
    Defence(
        "collusion",
        "desk/charging.py",
        "epsilon=dataset.epsilon, delta=dataset.delta, unit=unit)",
        "epsilon=1e6, delta=dataset.delta, unit=unit)",
        "test_service.py::test_analysts_share_the_budget_of_the_data_set",
    ),
    Defence(
        "denial of budget",
        "desk/service.py",
        "if size > dataset.largest_epsilon:",
        "if False:",
        "test_server.py::test_a_question_above_the_largest_epsilon_is_refused",
    ),
    Defence(
        "denial of budget",
        "desk/service.py",
        "return question.is_job or size > dataset.approval_above",
        "return False",
        "test_service.py::test_a_large_question_waits_for_the_owner_and_its_approval_is_in_the_chain",
    ),
    Defence(
        "approvals",
        "desk/charging.py",
        'if asking.decision and asking.decision["digest"] != question.digest(asking.person):',
        "if False:",
        "test_service.py::test_an_approval_of_another_question_charges_nothing",
    ),
    Defence(
        "approvals",
        "desk/questions.py",
        "if any(words in label.casefold() for words in DESKS_WORDS):",
        "if False:",
        "test_questions.py::test_a_label_does_not_say_that_the_owner_approved",
    ),
    Defence(
        "approvals", "desk/service.py", "if is_over(known):", "if False:", "test_service.py::test_an_approval_expires"
    ),
    Defence(
        "approvals",
        "desk/service.py",
        "        self._refuse_frozen()\n        now = self.state",
        "        now = self.state",
        "test_owner.py::test_what_is_queued_when_the_owner_stops_all_questions_is_not_charged",
    ),
    Defence(
        "tokens taken back",
        "desk/service.py",
        "if not self.state.token_count(person.name):",
        "if False:",
        "test_owner.py::test_what_is_queued_when_its_askers_tokens_are_taken_back_is_not_charged",
    ),
    Defence(
        "denial of service",
        "desk/server.py",
        "self.limits.take(person.name, dataset.name, dataset.rate)",
        "pass",
        "test_server.py::test_each_data_set_has_its_rate",
    ),
    Defence(
        "denial of service",
        "desk/server.py",
        "self._buckets[person, about] = level - 1, now",
        "self._buckets = {(person, each): (level - 1, now) for each in (about, 'stays')}",
        "test_server.py::test_questions_about_another_data_set_do_not_lift_the_rate_of_this_one",
    ),
    Defence(
        "denial of service",
        "desk/pages/visits.py",
        "if not self._heavy.acquire(timeout=wait):",
        "if not self._heavy.acquire(timeout=0.1) and False:",
        "pages/test_pages.py::test_who_plans_trainings_keeps_nobody_waiting",
    ),
    Defence(
        "denial of service",
        "desk/connections.py",
        "self._timer = self.loop.call_later(self.slowest, self.transport.close)",
        "pass",
        "test_server.py::test_a_head_that_is_sent_slowly_is_given_up",
    ),
    Defence(
        "errors as a channel",
        "desk/requests.py",
        "text.isascii() and text.isdigit() and len(text) < 19",
        "text.isdigit()",
        "test_server.py::test_a_number_that_no_question_has_is_not_there",
    ),
    Defence(
        "smuggled requests",
        "desk/guard.py",
        'if {b"transfer-encoding", b"content-length"} <= headers.keys():',
        "if False:",
        "test_server.py::test_a_request_with_two_lengths_is_refused",
    ),
    Defence(
        "denial of service",
        "desk/pages/planner.py",
        'visit.desk.free.take(visit.person.name, "training", TRAININGS)',
        "pass",
        "pages/test_pages.py::test_who_plans_trainings_keeps_nobody_waiting",
    ),
    Defence(
        "denial of service",
        "desk/service.py",
        "if self._waiting.get(person.name, 0) >= MOST_WAITING:",
        "if False:",
        "test_server.py::test_one_persons_queue_is_bounded",
    ),
    Defence(
        "denial of service",
        "desk/json_text.py",
        "if _depth(text) > DEEPEST:",
        "if False:",
        "test_questions.py::test_json_of_strangers_is_bounded",
    ),
    Defence(
        "denial of service",
        "desk/guard.py",
        "if length > LONGEST:",
        "if False:",
        "test_server.py::test_requests_are_bounded_in_length",
    ),
    Defence(
        "denial of service",
        "desk/questions.py",
        "if (numbers := count_numbers(query)) > MOST_NUMBERS:",
        "if False:",
        "test_questions.py::test_an_answer_is_bounded_in_size_before_it_is_paid_for",
    ),
    Defence(
        "files by DuckDB",
        "encoding/duckdb.py",
        '"enable_external_access = false",',
        "",
        "test_worker.py::test_a_locked_connection_reaches_its_own_file_alone",
    ),
    Defence(
        "files by DuckDB",
        "encoding/duckdb.py",
        '"lock_configuration = true",',
        "",
        "test_worker.py::test_a_locked_connection_reaches_its_own_file_alone",
    ),
    Defence(
        "files by DuckDB",
        "desk/worker.py",
        "        lock_connection(opened.source.connection, source_files(Path(source)))\n",
        "",
        "test_worker.py::test_a_workers_table_is_locked_and_still_answers",
    ),
    Defence(
        "network and programs",
        "desk/worker.py",
        "if not unconfined:",
        "if False:",
        "test_worker.py::test_every_worker_of_a_desk_is_confined",
    ),
    Defence(
        "network and programs",
        "desk/confinement.py",
        "(41, 42, 59, 322,",
        "(41, 42,",
        "test_worker.py::test_the_kernel_refuses_network_programs_and_memory",
    ),
    Defence(
        "path traversal",
        "desk/configuration.py",
        "if not path.is_relative_to(root):",
        "if False:",
        "test_configuration.py::test_what_is_not_known_or_out_of_range_is_refused",
    ),
    Defence(
        "addresses as sources",
        "desk/configuration.py",
        'if "://" in address:',
        "if False:",
        "test_databases.py::test_sources_that_a_confined_worker_cannot_have_are_refused_by_name",
    ),
    Defence(
        "scripts, framing",
        "desk/guard.py",
        "default-src 'none'; frame-ancestors 'none'",
        "default-src 'self'",
        "test_server.py::test_every_reply_is_marked",
    ),
    Defence(
        "DNS rebinding",
        "desk/guard.py",
        'if _name_of(headers.get(b"host", b"")) not in self._hosts:',
        "if False:",
        "test_server.py::test_a_desk_is_called_by_its_own_names_alone",
    ),
    Defence(
        "other sites",
        "desk/guard.py",
        'other = origin is not None and _name_of(origin.partition(b"://")[2]) not in self._hosts',
        "other = False",
        "test_server.py::test_a_page_of_another_origin_asks_nothing",
    ),
    Defence(
        "other sites",
        "desk/guard.py",
        "if other or (elsewhere and not _follows_link(scope, headers)):",
        "if other:",
        "test_server.py::test_a_page_of_another_site_asks_nothing",
    ),
    Defence(
        "tokens",
        "desk/state.py",
        '{"hash": _hash(token), "person"',
        '{"hash": token, "person"',
        "test_server.py::test_a_token_is_kept_as_a_hash_alone",
    ),
    Defence(
        "tokens",
        "desk/state.py",
        "if datetime.fromisoformat(row.expires) <= self._clock():",
        "if False:",
        "test_server.py::test_a_token_expires_and_is_taken_back",
    ),
    Defence(
        "tokens",
        "desk/guard.py",
        '"route": route, "status"',
        '"route": str(scope["path"]), "status"',
        "test_server.py::test_a_log_has_neither_tokens_nor_what_was_asked",
    ),
    Defence(
        "roles",
        "desk/server.py",
        "if person.role not in about.roles:",
        "if False:",
        "test_server.py::test_to_other_roles_a_route_is_not_there",
    ),
    Defence(
        "roles",
        "desk/service.py",
        "if dataset is None or not person.may_see(name):",
        "if dataset is None:",
        "test_server.py::test_an_analyst_sees_no_data_set_that_was_not_given",
    ),
    Defence(
        "rollback",
        "desk/service.py",
        "            self._refuse_older_ledger()\n",
        "",
        "test_service.py::test_a_ledger_that_was_put_back_to_an_earlier_day_is_not_served",
    ),
    Defence(
        "time of a query",
        "desk/history.py",
        'state = "running" if self._in_flight(row.number) else row.state',
        "state = row.state",
        "pages/test_pages.py::test_an_answer_that_has_not_left_is_not_shown",
    ),
    Defence(
        "another table",
        "desk/questions.py",
        "                _refuse_other_tables(self.sql, self.dataset)\n",
        "",
        "test_questions.py::test_sql_about_another_table_is_refused",
    ),
    Defence(
        "an approval of what looks otherwise",
        "desk/history.py",
        "return _visible(str(DeskQuestion.from_dict(self.question)))",
        "return str(DeskQuestion.from_dict(self.question))",
        "pages/test_asking.py::test_what_cannot_be_seen_is_shown_to_who_approves_it",
    ),
    Defence(
        "somebody's browser",
        "desk/pages/views.py",
        "autoescape=True",
        "autoescape=False",
        "pages/test_asking.py::test_what_people_write_is_escaped_everywhere",
    ),
    Defence(
        "somebody's name",
        "desk/pages/routes.py",
        'if urlsplit(request.headers.get("origin", "")).netloc != request.headers.get("host", "-"):',
        "if False:",
        "pages/test_signing_in.py::test_a_form_of_another_site_changes_nothing",
    ),
    Defence(
        "a planted session",
        "desk/pages/routes.py",
        'OVER_TLS = f"__Host-{COOKIE}"',
        "OVER_TLS = COOKIE",
        "pages/test_signing_in.py::test_over_tls_no_neighbouring_host_can_plant_a_session",
    ),
    Defence(
        "roles",
        "desk/pages/routes.py",
        "if person.role not in roles:",
        "if False:",
        "pages/test_signing_in.py::test_a_page_of_another_role_is_like_one_that_is_not_there",
    ),
    Defence(
        "training",
        "desk/questions.py",
        'case {"type": "marginals" | "synthesis" | "fit", "dataset"',
        'case {"type": "marginals" | "synthesis" | "fit" | "train", "dataset"',
        "test_jobs.py::test_what_is_publicly_wrong_is_refused_before_it_waits",
    ),
)


def check_lines() -> None:
    """Each line is where it is said to be, once, and so is its test: else the search would not take it out."""
    for defence in DEFENCES:
        text = (HOME / "src" / "discreet" / defence.file).read_text(encoding="utf-8")
        file, _, test = defence.test.partition("::")
        tests = (HOME / "tests" / "desk" / file).read_text(encoding="utf-8")
        if text.count(defence.line) != 1 or tests.count(f"def {test}(") != 1:
            raise AssertionError(f"{defence.file} or {defence.test} has changed: {defence.line!r}")


def passes(source: Path, test: str) -> bool:
    """Whether a test passes with the package of that folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/desk/{test}"]
    environment = os.environ | {"PYTHONPATH": f"{source}{os.pathsep}{HOME}", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=HOME, env=environment, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:  # without the defence it never ends, which nobody takes for a pass
        return False
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout[-2000:])
    return done.returncode == 0


def main(size: int | None = None, parts: Sequence[str] | None = None) -> None:
    """Each defence, or the first ``size`` of them; or those against the attacks that are named as parts."""
    check_lines()
    missed = []
    watched = [defence for defence in DEFENCES if not parts or defence.attack in parts][:size]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(HOME / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for number, defence in enumerate(watched):
            file = source / "discreet" / defence.file
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(defence.line, defence.without), encoding="utf-8")
            try:
                is_watched = not passes(source, defence.test)
            finally:
                file.write_text(text, encoding="utf-8")
            print(
                f"{number + 1:2} {defence.attack}: {'watched' if is_watched else 'NOT WATCHED'} by {defence.test}",
                flush=True,
            )
            missed += [] if is_watched else [defence]
    print(f"desk_defences: {len(watched) - len(missed)} of {len(watched)} defences are watched by a test", flush=True)
    assert not missed, missed


def retry(case: int) -> None:
    """One defence."""
    main(case)
