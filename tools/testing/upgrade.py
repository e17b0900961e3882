# SPDX-License-Identifier: GPL-2.0
"""The Debian packages are upgraded, and removed, on a client whose volumes are in use: a step
of `boot`.

Nothing is compiled in the guest, where that would take half an hour: DKMS copies the rig's
modules instead, those of the version after it with another number in them. All else is as on
any machine.
"""

import glob
import os
import re
import shutil
import subprocess

from booted import Failed
from guest import ROOT

# As DKMS's configuration: modules are in /run/rig/VERSION, and not in folders of a tree.
DKMS = "".join(f"BUILT_MODULE_LOCATION[{n}]=\n" for n in range(5)) + (
    'MAKE[0]="cp /run/rig/$PACKAGE_VERSION/*.ko ."\nCLEAN[0]=true\n')

STEPS = """
apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@" </dev/null; }

# The state that must not change while volumes are in use
state()
{
	grep . /sys/module/{rtrs_core,rtrs_client,rnbd_client}/version \
		/sys/class/rtrs-client/s1/{failover_timeout,hb_interval_ms,hb_max_missed}
	systemctl show -p Id,ActiveState,SubState,InvocationID 'rnbd-*'
	findmnt -t ext4 -no TARGET,SOURCE,OPTIONS
	ls -l /dev/disk/by-rnbd
}

in_use_as_before()
{
	local n

	state | diff /run/state - || fail "something changed"
	n=$(cat /run/loaded)
	wait_for 60 eval '[ "$(cat /run/loaded)" -gt $((n + 5)) ]' || fail "the load stands still"
	systemctl is-active load
}
"""

# The modules that are loaded are all there are: depmod would take minutes to read the others.
PREPARE = """
modules=/usr/lib/modules/$(uname -r)
mkdir -p /run/modules/build/include
cd $modules
lsmod | awk 'NR > 1 { print $1 }' | xargs modinfo -F filename |
	sed 's:.*/modules/[^/]*/::; /^updates/d' |
	xargs cp --parents -t /run/modules modules.builtin modules.order
printf 'CONFIG_INFINIBAND=m\\nCONFIG_INFINIBAND_ADDR_TRANS=y\\n' >/run/modules/build/.config
cd /
mount --bind /run/modules $modules
depmod
cp /run/rig/dkms.conf /etc/dkms/rnbd.conf
state >/run/state
"""

INSTALL = """
# The rig has brought a table of volumes already.
apt -o Dpkg::Options::=--force-confold install /run/rig/BEFORE/*.deb
equal installed "$(modinfo -F version rnbd_client)" BEFORE
equal "unit has changed" "$(systemctl show -p NeedDaemonReload --value rnbd-volume@data)" no
in_use_as_before
"""

UPGRADE = """
apt install /run/rig/AFTER/*.deb
equal installed "$(modinfo -F version rnbd_client)" AFTER
equal tool "$(rnbd --version)" "rnbd AFTER"
in_use_as_before
"""

# The tool, which unmaps volumes at a shutdown, stays while they are mapped.
REMOVE = """
! apt remove rnbd-utils >/run/said 2>&1 || fail "it was removed: $(cat /run/said)"
must "it isn't told why: $(cat /run/said)" grep -q "systemctl stop 'rnbd-volume@" /run/said
in_use_as_before
apt remove rnbd-dkms
must "the tool is gone" [ -e /usr/sbin/rnbd ]
! modinfo rnbd_client || fail "the modules are still there"
in_use_as_before
systemctl stop load
"""


def make_packages(path, share, before, after):
    """Both versions, with the modules that belong to them, for the guest"""
    subprocess.run(["sh", "-ec", """
        mkdir -p "$2"
        tar -C "$1" -cf - --exclude=./.git --exclude=./.build --exclude=./test-results \
            --exclude-from="$1/.gitignore" . | tar -C "$2" -xf -
        """, "sh", ROOT, path], check=True)
    for version in before, after:
        subprocess.run(["sed", "-i", f"1s/({before})/({version})/", path + "/debian/changelog"],
                       check=True)
        subprocess.run(["sed", "-i", f'/RTRS_DRV_VERSION/s/"{before}"/"{version}"/',
                        path + "/include/rdma/rtrs.h"], check=True)
        subprocess.run(["make", "-s", "-C", path, "deb"], check=True, stdout=subprocess.DEVNULL)
        os.makedirs(f"{share}/{version}")
        for name in glob.glob(path + "/*.deb"):
            shutil.move(name, f"{share}/{version}")
    with open(share + "/dkms.conf", "w") as f:
        f.write(DKMS)


def make_modules(env, share, before, after):
    for name in glob.glob(f"{env['DIR']}/tree-ours/lib/modules/{env['KVER']}/updates/r[nt]*.ko"):
        with open(name, "rb") as f:
            module = f.read()
        for version in before, after:
            old, new = f"\0version={before}\0".encode(), f"\0version={version}\0".encode()
            if module.count(old) != 1:
                raise Failed(f"{name} does not say its version, {before}")
            with open(f"{share}/{version}/{os.path.basename(name)}", "wb") as f:
                f.write(module.replace(old, new))


def in_use(boot):
    share = boot.lab.guests["client"].share
    with open(ROOT + "/debian/changelog") as f:
        before = re.match(r"rnbd \((.*?)\)", f.readline()).group(1)
    # As long as the other one, for it takes its place in the modules
    after = re.sub(r"\d", "9", before)
    make_packages(boot.path + "/packages", share, before, after)
    make_modules(boot.lab.env, share, before, after)
    boot.device_timeout(90)
    for name in "server", "client":
        if not boot.lab.guests[name].alive():
            boot.comes_up(name)
    boot.must("client", 60, boot.mounted())
    boot.write_files()
    boot.start_load()
    boot.said("client")
    for steps in PREPARE, INSTALL, UPGRADE, REMOVE:
        boot.sh("client", STEPS + steps.replace("BEFORE", before).replace("AFTER", after), 180)
    log = boot.said("client")
    if re.search("unmapping|I/O error|EXT4-fs.*error", log):
        raise Failed(f"the volumes noticed it:\n{log[-3000:]}")
    took = boot.goes_down("client", 60, "poweroff")
    print(f"# after that, the client went down in {took:.0f} s", flush=True)
    boot.check_clean_shutdown(boot.said("client"))
