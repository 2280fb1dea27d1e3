# The gateway alone: it forwards, spools and ships. No SQLAlchemy, NumPy or SciPy in here; the store's schema and the
# client keys are made with the auditor's image. Built from the repository's root:
#   docker build -f deploy/docker/gateway.Dockerfile -t tiltmeter-gateway .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE tiltmeter.py ./
COPY gateway gateway
COPY auditor auditor
COPY replay replay
RUN python -m venv /opt/tiltmeter \
 && /opt/tiltmeter/bin/pip install --no-cache-dir -c constraints.txt .

FROM python:3.13-slim
COPY --from=build /opt/tiltmeter /opt/tiltmeter
RUN useradd --uid 10001 --home-dir /var/lib/tiltmeter --create-home tiltmeter
ENV PATH=/opt/tiltmeter/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
# The spool lives here: copies that are not in the store yet. Give it a volume that outlives the container.
VOLUME /var/lib/tiltmeter
EXPOSE 4000
# Alive, not ready: a gateway that drains must not be killed for it. Load balancers ask /readyz.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4000/healthz', timeout=2)"]
ENTRYPOINT ["tiltmeter"]
CMD ["gateway", "-c", "/etc/tiltmeter/tiltmeter.yaml"]
