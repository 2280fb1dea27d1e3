# The auditor: coding, estimates, its API; also `tiltmeter migrate`, `key`, `check`, `audit`, `report` and `replay`.
# Without the embedded PostgreSQL: containers are given a server. Built from the repository's root:
#   docker build -f deploy/docker/auditor.Dockerfile -t tiltmeter-auditor .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE tiltmeter.py ./
COPY gateway gateway
COPY auditor auditor
COPY replay replay
RUN python -m venv /opt/tiltmeter \
 && /opt/tiltmeter/bin/pip install --no-cache-dir -c constraints.txt ".[audit]"

FROM python:3.13-slim
COPY --from=build /opt/tiltmeter /opt/tiltmeter
RUN useradd --uid 10001 --home-dir /var/lib/tiltmeter --create-home tiltmeter
ENV PATH=/opt/tiltmeter/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
VOLUME /var/lib/tiltmeter
EXPOSE 4001
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4001/healthz', timeout=2)"]
ENTRYPOINT ["tiltmeter"]
CMD ["auditor", "-c", "/etc/tiltmeter/tiltmeter.yaml"]
