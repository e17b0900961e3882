#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# inside.sh TEST: one of the tests of packages, as root in a root folder of its own (see `run`).
# The tree is in /tree; what the test "build" has made is in /debs: the packages in now/, and
# in before/ those of a version before.

# shellcheck disable=SC2034
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
test=$1
here=/tree/tools/testing/packages
modules="rtrs-core rtrs-client rtrs-server rnbd-client rnbd-server"
kernel=$(ls /lib/modules)
version=$(dpkg-parsechangelog -l /tree/debian/changelog -S Version)

# check TEXT COMMAND...: is it so? What the command said follows if not.
check()
{
	local text=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "ok $test: $text"
	else
		tail -n 30 <<<"$said" | cut -c 1-400 | sed 's/^/# /'
		echo "not ok $test: $text"
	fi
}

# must COMMAND...: without it there's no point in going on
must()
{
	"$@" >/tmp/must 2>&1 && return
	echo "not ok $test: $*"
	tail -n 30 /tmp/must | cut -c 1-400 | sed 's/^/# /'
	exit 1
}

# fails_with TEXT COMMAND...: it fails, and a line says this
fails_with()
{
	local text=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "it didn't fail"
		return 1
	fi
	echo "$said"
	grep -qE -- "$text" <<<"$said"
}

# plain TEXT: as a pattern that is just this
plain()
{
	sed 's/[.+]/\\&/g' <<<"$1"
}

# says TEXT COMMAND...: it doesn't, and a line says this
says()
{
	local text=$1 said rc
	shift
	said=$("$@" 2>&1)
	rc=$?
	echo "$said"
	[ $rc = 0 ] && grep -qE -- "$text" <<<"$said"
}

# There are no package lists here, so nothing is downloaded.
apt()
{
	apt-get -q -y -o Dpkg::Use-Pty=0 "$@"
}

# copy FOLDER: of the tree, without what was built there
copy()
{
	mkdir -p "$1"
	tar -C /tree --exclude=./.git --exclude=./.build --exclude=./test-results --exclude-from=/tree/.gitignore \
		-cf - . | tar -C "$1" -xf -
}

# has_image KERNEL: it has a module of its own, and depmod's lists, as if it were installed.
# Only then has DKMS of Debian 13 its modules in them, and keeps the lists when they go.
has_image()
{
	mkdir -p "/lib/modules/$1/kernel"
	must gcc -x c -c -o "/lib/modules/$1/kernel/other.ko" /dev/null
	must depmod "$1"
}

# second_kernel: the headers of a further kernel are installed; its name is in $second
second_kernel()
{
	second=$(cd /var/lib/second && printf '%s\n' linux-headers-[0-9]*-rt-*.deb |
		sed -n 's/^linux-headers-\(.*-rt-[a-z0-9]*\)_.*/\1/p')
	has_image "$second"
	must dpkg -i /var/lib/second/*.deb
}

# instead_of COMMAND: what is read is run in its place; it's in /opt from then on
instead_of()
{
	[ -e "/opt/${1##*/}" ] || cp -P "$1" /opt/
	rm "$1"
	cat >"$1"
	chmod +x "$1"
}

# running KERNEL: what uname says
running()
{
	instead_of /usr/bin/uname <<-E
	#!/bin/sh
	case "\$*" in
	-r) echo "$1" ;;
	*) exec /opt/uname "\$@" ;;
	esac
	E
}

# Whoever unloads a module is written down.
watch_unloading()
{
	local c

	for c in rmmod modprobe; do
		instead_of "/usr/sbin/$c" <<-E
		#!/bin/sh
		echo "$c \$*" >>/run/unloading
		exec /opt/$c "\$@"
		E
	done
	touch /run/unloading
}

nothing_unloaded()
{
	! grep -E '^rmmod|^modprobe .*(-r|--remove)' /run/unloading
}

# modules_of KERNEL [VERSION]: all five of them are installed where modprobe looks first
modules_of()
{
	local m ko

	dkms status -m rnbd -v "${2:-$version}" -k "$1" | grep installed || return
	for m in $modules; do
		ko=$(modinfo -k "$1" -F filename "$m") || return
		echo "$ko $(modinfo -F version "$ko") $(modinfo -F vermagic "$ko")"
		[[ $ko = /lib/modules/$1/updates/dkms/$m.ko* ]] || return
		[[ $(modinfo -F vermagic "$ko") = "$1 "* ]] || return
		[ "$(modinfo -F version "$ko")" = "${2:-$version}" ] || return
	done
}

# All files, and what those in /etc contain. DKMS keeps its key, with which it signs the modules
# of all packages; depmod's lists are of what there is; the cache and the logs are apt's.
listing()
{
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run \
		-o -path /tree -o -path /debs -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \
		-o -path '/var/lib/dkms/mok.*' -o -path '/var/lib/dpkg/*-old' \
		-o -path '/usr/lib/modules/*/modules.*' \) -prune -o -print | sort
	find /etc -type f -print0 | sort -z | xargs -0 sha256sum
}

has_image "$kernel"
# shellcheck source=/dev/null
. "$here/$test.sh"
echo "end of test"
