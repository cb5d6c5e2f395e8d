# syntax=docker/dockerfile:1

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -o /out/mcpx .

FROM debian:bookworm-slim
# curl is for health checks. /data belongs to the user that mcpx runs as, and so does a volume that is made there.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home mcpx \
    && install -d -m 0755 /etc/mcpx/examples/workspace \
    && install -d -o mcpx -g mcpx -m 0700 /data
COPY --from=build /out/mcpx /usr/local/bin/mcpx
USER 10001
WORKDIR /data
ENTRYPOINT ["mcpx"]
CMD ["--help"]
