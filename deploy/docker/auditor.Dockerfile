# The auditor: coding, estimates, its API; also `biasmeter migrate`, `key`, `check`, `audit`, `report` and `replay`.
# Without the embedded PostgreSQL: containers are given a server. Built from the repository's root:
#   docker build -f deploy/docker/auditor.Dockerfile -t biasmeter-auditor .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY deploy/docker/requirements-build.txt deploy/docker/requirements-auditor.txt ./
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
 && /opt/biasmeter/bin/pip install --no-cache-dir --require-hashes -r requirements-auditor.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt \
 && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps -w /dist . \
 && /opt/biasmeter/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl

FROM python:3.13-slim
COPY --from=build /opt/biasmeter /opt/biasmeter
RUN useradd --uid 10001 --home-dir /var/lib/biasmeter --create-home biasmeter
ENV PATH=/opt/biasmeter/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
VOLUME /var/lib/biasmeter
EXPOSE 4001
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4001/healthz', timeout=2)"]
ENTRYPOINT ["biasmeter"]
CMD ["auditor", "-c", "/etc/biasmeter/biasmeter.yaml"]
