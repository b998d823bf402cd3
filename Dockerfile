# A static binary and nothing else. Build it with
#   docker build -t cairn .
# and serve a folder with
#   docker run --rm -p 127.0.0.1:7420:7420 -v "$PWD:/workspace" --user "$(id -u):$(id -g)" cairn
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/cairn ./cmd/cairn
# What a scratch image lacks: a place for temporary files that its user may write.
RUN mkdir -p /out/tmp /out/workspace && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /out/cairn /cairn
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build --chown=65532:65532 /out/workspace /workspace
USER 65532:65532
ENV CAIRN_WORKSPACE=/workspace HOME=/tmp
EXPOSE 7420
VOLUME /workspace
ENTRYPOINT ["/cairn"]
# Within a container 127.0.0.1 is its own: the port is opened by who runs it.
CMD ["serve", "--addr", "0.0.0.0:7420"]
