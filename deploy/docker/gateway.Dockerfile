# The gateway alone: it forwards, spools and ships. No SQLAlchemy, NumPy or SciPy in here; the store's schema and the
# client keys are made with the auditor's image. Built from the repository's root:
#   docker build -f deploy/docker/gateway.Dockerfile -t biasmeter-gateway .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY deploy/docker/requirements-build.txt deploy/docker/requirements-gateway.txt ./
COPY biasmeter biasmeter
COPY gateway gateway
COPY auditor auditor
COPY replay replay
COPY deploy/.env.example deploy/biasmeter.yaml deploy/compose.yaml deploy/
COPY deploy/grafana/dashboards deploy/grafana/dashboards
COPY deploy/grafana/provisioning deploy/grafana/provisioning
COPY deploy/kubernetes deploy/kubernetes
COPY deploy/prometheus deploy/prometheus
COPY deploy/systemd deploy/systemd
RUN python -m venv /opt/biasmeter \
 && /opt/biasmeter/bin/pip install --no-cache-dir --require-hashes -r requirements-gateway.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt \
 && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps -w /dist . \
 && /opt/biasmeter/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl

FROM python:3.13-slim
COPY --from=build /opt/biasmeter /opt/biasmeter
RUN useradd --uid 10001 --home-dir /var/lib/biasmeter --create-home biasmeter
ENV PATH=/opt/biasmeter/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
# The spool lives here: copies that are not in the store yet. Give it a volume that outlives the container.
VOLUME /var/lib/biasmeter
EXPOSE 4000
# Alive, not ready: a gateway that drains must not be killed for it. Load balancers ask /readyz.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4000/healthz', timeout=2)"]
ENTRYPOINT ["biasmeter"]
CMD ["gateway", "-c", "/etc/biasmeter/biasmeter.yaml"]
