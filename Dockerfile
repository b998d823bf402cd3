# A static binary, with the embedding model inside, and nothing else:
#   docker build -t cairn .
#
# To serve a folder on this machine alone, to everybody on it:
#   docker run --rm -p 127.0.0.1:7420:7420 -v "$PWD:/workspace" -v cairn:/cairn --user "$(id -u):$(id -g)" cairn serve --addr 0.0.0.0:7420 --auth off
# The volume /cairn keeps the index and what is learnt from use (CAIRN_HOME). Folders
# that are all mounted at /workspace need one each.
#
# As it is, the image asks for a token. Yours are made, and kept, with
#   mkdir -p ~/.config/cairn
#   docker run --rm -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn token new NAME
#   docker run --rm -p 7420:7420 -v "$PWD:/workspace" -v cairn:/cairn -v ~/.config/cairn:/config --user "$(id -u):$(id -g)" cairn
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
# What a scratch image lacks: places for temporary files and for cairn's own that every
# user may write, and below, the certificate authorities for TLS to a language model,
# Qdrant or a collector. A new volume takes over the owner and mode of its folder.
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
# Within a container 127.0.0.1 is its own: the port is opened by who runs it.
CMD ["serve", "--addr", "0.0.0.0:7420"]
