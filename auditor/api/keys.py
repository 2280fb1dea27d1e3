"""The application's typed keys."""

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api.door import Door

ENGINE = web.AppKey("engine", AsyncEngine)
DOOR = web.AppKey("door", Door)
