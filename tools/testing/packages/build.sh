# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# make deb builds both packages, and lintian has nothing to say about them.

# Which version of Debian's policy is the current one differs from release to release, and 12's
# lintian alone wants scripts for other inits beside units, a tag that later ones don't know.
silent()
{
	! lintian --allow-root --display-info "$@" \
		--suppress-tags out-of-date-standards-version,newer-standards-version 2>&1 |
		grep -vE '^running with root|package-supports-alternative-init'
}

# All that is in the folder but the packages
others()
{
	find . -mindepth 1 ! -name 'rnbd-*.deb' -print0 | sort -z | xargs -0 ls -dl --time-style=full-iso
}

copy /build/now
cd /build/now || exit
find . -exec touch -d 2020-01-01 {} +	# whatever is written to is newer
others >/tmp/before
check "make deb" make deb
check "its packages" ls rnbd-dkms_"$version"_all.deb rnbd-utils_"$version"_amd64.deb
check "sessions in use don't hurry when they are removed" fails_with '^$' grep -a rnbd-hurry \
	<(dpkg-deb --ctrl-tarfile rnbd-utils_*.deb | tar -xO --exclude=./md5sums)
others >/tmp/after
check "nothing else is left in the tree" diff /tmp/before /tmp/after
check "lintian is silent: packages" silent --pedantic ./*.deb
mkdir -p /debs/now
cp ./*.deb /debs/now/

mkdir /build/source
cp -r /build/now /build/source/rnbd
(cd /build/source/rnbd && rm -f ./*.deb && must dpkg-buildpackage -S -d -us -uc)
# Not pedantic: 12 misses fields in debian/control that are superfluous in unstable.
check "lintian is silent: source" silent /build/source/*.dsc

# where_built: what make leaves in the tree is not taken for DKMS's source
where_built()
{
	cd /build/source/rnbd || return
	touch drivers/block/rnbd/{a.o,a.ko,a.mod,a.mod.c,.a.o.cmd,modules.order} || return
	make -s -f debian/rules override_dh_auto_install-indep || return
	diff -r /build/now/drivers debian/rnbd-dkms/usr/src/rnbd-*/drivers &&
		diff -r /build/now/include debian/rnbd-dkms/usr/src/rnbd-*/include
}
check "DKMS's source where make has run" where_built

copy /build/before
cd /build/before || exit
sed -i "1s/($version)/(0.9)/" debian/changelog
check "another version than the drivers' is refused" fails_with "RTRS_DRV_VERSION is $version, .* 0.9" make deb
sed -i "s/\(RTRS_DRV_VERSION.*\)\"$version\"/\1\"0.9\"/" include/rdma/rtrs.h
must make deb
must dpkg-deb -x rnbd-utils_0.9_amd64.deb /tmp/utils
check "the tool has the package's version" says '^rnbd 0\.9$' /tmp/utils/usr/sbin/rnbd --version
mkdir -p /debs/before
cp ./*.deb /debs/before/

must dpkg --purge --force-depends libjson-c-dev
check "what is missing is named" fails_with 'missing: .*libjson-c-dev' make deb
