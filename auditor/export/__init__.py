"""What leaves the store or a result in a format that others read, and the readers of these formats.

``families`` and ``series`` make Prometheus series of stored estimates, ``process_series`` those of the process;
``collector`` sends codings as OpenTelemetry, in the form of ``otlp``. ``coded_rows`` writes codings as rows, and
``exchange_rows`` reads exported exchanges as responses. ``parquet`` has copies of whole days, ``inspect_writer`` and
``inspect_reader`` logs of Inspect AI. Nothing is estimated here.
"""
