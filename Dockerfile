# An image with only a static binary, which contains the embedding model:
#   docker build -t cairn .
#
# Serve a folder to all users of this machine, and to no other machine:
#   docker run --rm -p 127.0.0.1:7420:7420 -v "$PWD:/workspace" -v cairn:/cairn --user "$(id -u):$(id -g)" cairn serve --addr 0.0.0.0:7420 --auth off
# The volume /cairn holds the index and the usage (CAIRN_HOME). Each folder that is mounted at
# /workspace needs its own volume.
#
# By default the server requires a token. Create one and serve with
#   mkdir -p ~/.config/cairn
#   docker run --rm -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn token new NAME
#   docker run --rm -p 7420:7420 -v "$PWD:/workspace" -v cairn:/cairn -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn
# behind a proxy with TLS, or with --tls-cert and --tls-key. If clients use a host name instead
# of an address, name it with --allow-host.
# The image is named by tag. To pin it, write the digest that `docker buildx imagetools inspect
# NAME:TAG` prints behind the tag: NAME:TAG@sha256:DIGEST. A pinned image gets no security updates
# until the digest is changed.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
ARG COMMIT=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /out/cairn ./cmd/cairn
RUN deploy/licences.sh >/out/licences.txt
# A scratch image lacks folders for temporary files and for cairn's own files, which every user
# can write, and the certificate authorities for TLS to a language model, Qdrant or a
# collector. A new volume inherits the owner and mode of its folder.
RUN mkdir -p /out/own/tmp /out/own/cairn /out/own/workspace /out/own/config && chmod 1777 /out/own/tmp /out/own/cairn

FROM scratch
COPY --from=build /out/cairn /cairn
COPY --from=build /out/licences.txt /src/LICENSE /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/own /
USER 65532:65532
ENV CAIRN_WORKSPACE=/workspace CAIRN_HOME=/cairn CAIRN_TOKENS=/config/tokens.json HOME=/tmp
EXPOSE 7420
VOLUME ["/workspace", "/cairn", "/config"]
ENTRYPOINT ["/cairn"]
# 127.0.0.1 is not reachable from outside a container; docker run -p publishes the port.
CMD ["serve", "--addr", "0.0.0.0:7420"]
