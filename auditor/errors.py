"""The auditor's errors: few, one leaf only where callers act differently, each with a stable ``code``.

    AuditError                the work failed                                exit 1
    ├── InputError            a data file holds something that cannot be read   exit 1, names file:line
    ├── StoreUnavailable      PostgreSQL does not answer; retry              exit 1
    ├── JudgeUnavailable      a judge's endpoint does not answer; retry      exit 1
    └── UsageError            what was asked for cannot be done              exit 2
        ├── ConfigError       the configuration is wrong, names file:line    exit 2
        └── SchemaMismatch    the store has another version; stop            exit 2

``str(error)`` is one line for a person: what is wrong, and where.
"""

from typing import ClassVar


class AuditError(Exception):
    """The work failed."""

    code: ClassVar[str] = "failed"
    exit_status: ClassVar[int] = 1


class InputError(AuditError):
    """A data file holds something that cannot be read."""

    code = "bad_input"


class StoreUnavailable(AuditError):  # noqa: N818 -- the project's words: a state, not a bug
    """PostgreSQL does not answer."""

    code = "store_unavailable"


class JudgeUnavailable(AuditError):  # noqa: N818 -- as above
    """A judge's endpoint does not answer."""

    code = "judge_unavailable"


class UsageError(AuditError):
    """What was asked for cannot be done."""

    code = "usage"
    exit_status = 2


class ConfigError(UsageError):
    """The configuration is wrong."""

    code = "config"


class SchemaMismatch(UsageError):  # noqa: N818 -- as above
    """The store's schema is of another version."""

    code = "schema_mismatch"
