# PostgreSQL's own image with fmsort in every session, and its statistics and
# progress.
#
#   docker build --build-arg PG_MAJOR=17 -t postgres-fmsort .
#   docker run -e POSTGRES_PASSWORD=... postgres-fmsort
#
# The builder has compilers and headers; the result has one library and a few
# files more than the image it starts from.  The versions of Debian's packages
# are those of the image's release.
ARG PG_MAJOR=17

FROM postgres:${PG_MAJOR} AS builder
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends gcc libc6-dev libicu-dev \
        liblz4-dev liburing-dev make pkg-config "postgresql-server-dev-${PG_MAJOR}" && \
    rm -rf /var/lib/apt/lists/*
COPY . /usr/src/fmsort
WORKDIR /usr/src/fmsort
RUN make clean && make && make install DESTDIR=/staged

FROM postgres:${PG_MAJOR}
LABEL org.opencontainers.image.title="PostgreSQL with fmsort" \
      org.opencontainers.image.source="https://github.com/fmsort/fmsort" \
      org.opencontainers.image.licenses="PostgreSQL"
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install -y --no-install-recommends liblz4-1 liburing2 && \
    rm -rf /var/lib/apt/lists/* && \
    echo "shared_preload_libraries = 'fmsort'" \
        >>/usr/share/postgresql/postgresql.conf.sample && \
    echo "CREATE EXTENSION fmsort;" \
        >/docker-entrypoint-initdb.d/50-fmsort.sql
COPY --from=builder /staged /
