"""The one YAML configuration, read alike by the gateway, the auditor and the commands.

``load`` is the door: it gives a frozen ``Config`` or raises ``ConfigError`` with one line per problem, each with
file and line. Light enough for a gateway worker: pydantic, PyYAML and the standard library, nothing else.
"""

from auditor.config.audits import (
    Audit,
    Budget,
    Cluster,
    ElaborationRule,
    Embedding,
    Judge,
    Monitor,
    Panel,
    PeerDomain,
    Probe,
    Proposition,
    Retention,
    SelectionRule,
    Webhook,
)
from auditor.config.loading import Loaded, default_config, load, loads, read
from auditor.config.models import (
    AuditorConfig,
    Config,
    Deployment,
    GatewayConfig,
    Price,
    Route,
    Spool,
    Store,
    Timeouts,
    WeightedDeployment,
)
from auditor.config.network import Address
from auditor.config.values import format_duration, parse_duration, parse_size
from auditor.config.yaml_source import Places

__all__ = [
    "Address",
    "Audit",
    "AuditorConfig",
    "Budget",
    "Cluster",
    "Config",
    "Deployment",
    "ElaborationRule",
    "Embedding",
    "GatewayConfig",
    "Judge",
    "Loaded",
    "Monitor",
    "Panel",
    "PeerDomain",
    "Places",
    "Price",
    "Probe",
    "Proposition",
    "Retention",
    "Route",
    "SelectionRule",
    "Spool",
    "Store",
    "Timeouts",
    "Webhook",
    "WeightedDeployment",
    "default_config",
    "format_duration",
    "load",
    "loads",
    "parse_duration",
    "parse_size",
    "read",
]
