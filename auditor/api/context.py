"""Define the typed keys under which the application keeps its services."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api.auth import ApiAuth
from auditor.config import Config

ENGINE = web.AppKey("engine", AsyncEngine)
AUTH = web.AppKey("auth", ApiAuth)
CONFIG: web.AppKey[Callable[[], Config]] = web.AppKey("config")
CLOCK: web.AppKey[Callable[[], datetime]] = web.AppKey("clock")
