"""Load the YAML configuration that the gateway, the auditor and the commands share.

``load`` returns a frozen ``Config`` or raises ``ConfigError`` with one line per problem, each with file and line. The
package imports only pydantic, PyYAML and the standard library, because gateway workers load it.
"""

from auditor.config.actions import FindingPolicy
from auditor.config.audits import (
    Audit,
    Budget,
    Cluster,
    ElaborationRule,
    Embedding,
    JudgeConfig,
    Monitor,
    PanelConfig,
    PeerDomain,
    Probe,
    Proposition,
    Retention,
    SelectionRule,
    Webhook,
)
from auditor.config.loading import LoadedConfig, default_config, load, load_without_upstream_keys, loads, read
from auditor.config.models import AuditorConfig, Config, GatewayConfig, Spool, StoreConfig
from auditor.config.network import Address
from auditor.config.routes import Deployment, Price, Route, Timeouts, WeightedDeployment
from auditor.config.trials import MitigationArm, MitigationTrial, StopRule
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
    "FindingPolicy",
    "GatewayConfig",
    "JudgeConfig",
    "LoadedConfig",
    "MitigationArm",
    "MitigationTrial",
    "Monitor",
    "PanelConfig",
    "PeerDomain",
    "Places",
    "Price",
    "Probe",
    "Proposition",
    "Retention",
    "Route",
    "SelectionRule",
    "Spool",
    "StopRule",
    "StoreConfig",
    "Timeouts",
    "Webhook",
    "WeightedDeployment",
    "default_config",
    "format_duration",
    "load",
    "load_without_upstream_keys",
    "loads",
    "parse_duration",
    "parse_size",
    "read",
]
