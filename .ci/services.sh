#!/usr/bin/env bash
# services.sh start DIR starts private servers of Redis, Postgres and RabbitMQ below DIR if they
# are installed, and prints the variables of the test suites for eval. services.sh stop DIR
# ends these servers by their process ids. INSTALL=1 installs missing servers (Debian, root).
# SERVICES selects some servers. REDIS_PORT, POSTGRES_PORT and RABBITMQ_PORT set their ports, so
# that a stopped server can start again with its data.
set -uo pipefail

# free_port prints an unused port below the range of ephemeral ports.
free_port() {
	local port
	while port=$((20000 + RANDOM % 12000)); answers "$port"; do :; done
	echo "$port"
}

# wait_for SECONDS COMMAND...: waits until the command succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# as_user COMMAND...: runs the command without privileges, because Postgres does not run as root.
as_user() {
	if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; else "$@"; fi
}

start_redis() {
	command -v redis-server >/dev/null || return 1
	local port=${REDIS_PORT:-$(free_port)}
	mkdir -p "$dir/redis"
	redis-server --bind 127.0.0.1 --port "$port" --dir "$dir/redis" --appendonly yes --save '' --daemonize no >"$dir/redis.log" 2>&1 &
	echo $! >"$dir/redis.pid"
	wait_for 20 answers "$port" || return 1
	echo "export CAIRN_TEST_REDIS=redis://127.0.0.1:$port/0"
}

start_postgres() {
	local bin initdb
	initdb=$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1)
	[ -n "$initdb" ] || return 1
	bin=$(dirname "$(readlink -f "$initdb")")
	local port=${POSTGRES_PORT:-$(free_port)}
	if [ ! -e "$dir/postgres/PG_VERSION" ]; then
		mkdir -p "$dir/postgres"
		[ "$(id -u)" = 0 ] && chown nobody:nogroup "$dir/postgres"
		(cd / && as_user "$bin/initdb" -D "$dir/postgres" -U cairn -A trust -E UTF8 --locale=C) >"$dir/initdb.log" 2>&1 || return 1
	fi
	(cd / && exec setsid "${as[@]}" "$bin/postgres" -D "$dir/postgres" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200) >"$dir/postgres.log" 2>&1 &
	echo $! >"$dir/postgres.pid"
	wait_for 30 "$bin/pg_isready" -h 127.0.0.1 -p "$port" || return 1
	echo "export CAIRN_TEST_POSTGRES=postgres://cairn@127.0.0.1:$port/postgres"
}

start_rabbitmq() {
	local server
	server=$(ls /usr/lib/rabbitmq/bin/rabbitmq-server 2>/dev/null || command -v rabbitmq-server) || return 1
	[ -n "$server" ] || return 1
	local port=${RABBITMQ_PORT:-$(free_port)} dist names
	dist=$(free_port)
	mkdir -p "$dir/rabbitmq"
	# A name service that RabbitMQ starts would outlive it, so this script starts it.
	[ -e "$dir/names" ] || free_port >"$dir/names"
	names=$(cat "$dir/names")
	if ! answers "$names"; then
		epmd -port "$names" -address 127.0.0.1 >"$dir/epmd.log" 2>&1 &
		echo $! >"$dir/epmd.pid"
		wait_for 10 answers "$names" || return 1
	fi
	[ -e "$dir/rabbitmq/.erlang.cookie" ] || (umask 077 && head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$dir/rabbitmq/.erlang.cookie")
	chmod 400 "$dir/rabbitmq/.erlang.cookie"
	# The host names of containers do not always resolve, but localhost does.
	HOME="$dir/rabbitmq" ERL_EPMD_PORT=$names ERL_EPMD_ADDRESS=127.0.0.1 \
		RABBITMQ_NODENAME="cairn-$port@localhost" RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port" RABBITMQ_DIST_PORT="$dist" \
		RABBITMQ_MNESIA_BASE="$dir/rabbitmq/mnesia" RABBITMQ_LOG_BASE="$dir/rabbitmq/log" RABBITMQ_PID_FILE="$dir/rabbitmq/pid" \
		RABBITMQ_ENABLED_PLUGINS_FILE="$dir/rabbitmq/plugins" RABBITMQ_CONFIG_FILE="$dir/rabbitmq/none" \
		RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" \
		setsid "$server" >"$dir/rabbitmq.log" 2>&1 &
	echo $! >"$dir/rabbitmq.pid"
	wait_for "${RABBITMQ_WAIT:-150}" answers "$port" || return 1
	echo "export CAIRN_TEST_AMQP=amqp://guest:guest@127.0.0.1:$port/"
}

# stop NAME SIGNAL [GROUP]: ends a server, or its process group, and waits for the end.
stop() {
	local file=$dir/$1.pid pid
	[ -e "$file" ] || return 0
	pid=$(cat "$file")
	kill "-$2" -- "${3:+-}$pid" 2>/dev/null
	wait_for 20 bash -c "! kill -0 -- ${3:+-}$pid" || kill -KILL -- "${3:+-}$pid" 2>/dev/null
	rm -f "$file"
}

stop_redis() { stop redis TERM; }
stop_postgres() { stop postgres INT; } # does not wait for clients
stop_rabbitmq() {
	stop rabbitmq TERM group
	stop epmd TERM
}

# install NAME...: installs packages without starting their services.
install() {
	local policy=/usr/sbin/policy-rc.d own=
	[ -e "$policy" ] || { own=1 && printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"; }
	(timeout 60 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 120 apt-get install -y -qq --no-install-recommends "$@") >"$dir/apt.log" 2>&1 ||
		echo "services: could not install $*" >&2
	[ -z "$own" ] || rm -f "$policy"
}

case "${1:-}" in
start)
	dir=$2
	mkdir -p "$dir"
	chmod 755 "$dir"
	as=()
	[ "$(id -u)" = 0 ] && as=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)
	if [ -n "${INSTALL:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		missing=()
		command -v redis-server >/dev/null || missing+=(redis-server)
		command -v rabbitmq-server >/dev/null || missing+=(rabbitmq-server)
		[ -n "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || missing+=(postgresql)
		command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static) # for .ci/run
		if [ ${#missing[@]} -gt 0 ]; then
			install "${missing[@]}"
		fi
		command -v chromium >/dev/null || install chromium # for .ci/run
	fi
	for service in ${SERVICES:-redis postgres rabbitmq}; do
		"start_$service" || echo "services: $service did not start; its suites are skipped" >&2
	done
	;;
stop)
	dir=$2
	for service in ${SERVICES:-rabbitmq redis postgres}; do "stop_$service"; done
	;;
*)
	echo "usage: services.sh start|stop DIR" >&2
	exit 2
	;;
esac
