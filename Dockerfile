# A static binary, with the embedding model inside, and nothing else:
#   docker build -t cairn .
#
# To serve a folder on this machine alone, to everybody on it:
#   docker run --rm -p 127.0.0.1:7420:7420 -v "$PWD:/workspace" --user "$(id -u):$(id -g)" cairn serve --addr 0.0.0.0:7420 --auth off
#
# As it is, the image asks for a token. Yours are made, and kept, with
#   mkdir -p ~/.config/cairn
#   docker run --rm -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn token new NAME
#   docker run --rm -p 7420:7420 -v "$PWD:/workspace" -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn
# with a proxy that speaks TLS in front, or --tls-cert and --tls-key; --allow-host
# names what the server is called by, where that is not an address.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/cairn ./cmd/cairn
RUN deploy/licences.sh >/out/licences.txt
# What a scratch image lacks: a place for temporary files that its user may write,
# and below, whom to trust when a language model, Qdrant or a collector is reached by
# TLS. A volume that is put on a folder takes over whose it is.
RUN mkdir -p /out/own/tmp /out/own/workspace/.cairn /out/own/config && chmod 1777 /out/own/tmp

FROM scratch
COPY --from=build /out/cairn /cairn
COPY --from=build /out/licences.txt /src/LICENSE /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/own /
USER 65532:65532
ENV CAIRN_WORKSPACE=/workspace CAIRN_TOKENS=/config/tokens.json HOME=/tmp
EXPOSE 7420
VOLUME ["/workspace", "/config"]
ENTRYPOINT ["/cairn"]
# Within a container 127.0.0.1 is its own: the port is opened by who runs it.
CMD ["serve", "--addr", "0.0.0.0:7420"]
