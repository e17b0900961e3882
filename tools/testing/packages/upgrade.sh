# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# An upgrade and a removal while the modules are loaded, as a folder in /sys says here; a
# kernel that comes later.

running "$kernel"
watch_unloading
check "apt install of the version before" apt install /debs/before/*.deb
check "its modules" modules_of "$kernel" 0.9
mkdir -p /sys/module/rtrs_core
check "the upgrade says that loaded modules stay" \
	says '^rnbd-dkms: .* loaded stay so' apt install /debs/now/*.deb
check "new modules" modules_of "$kernel"
check "none of the version before" fails_with '^$' grep . <(dkms status -m rnbd -v 0.9)
second_kernel
check "modules of a kernel that came later" modules_of "$second"
must mkdir -p /etc/systemd/system/multi-user.target.wants
# As systemctl enable does it, which isn't there
must ln -s /lib/systemd/system/rnbd-server.service /etc/systemd/system/multi-user.target.wants/
# A volume's unit that is active, as systemd would say if it ran
mkdir -p /run/systemd/system
printf '#!/bin/sh\ncase "$*" in *list-units*) cat /run/units 2>/dev/null ;; esac\n' >/usr/bin/systemctl
chmod +x /usr/bin/systemctl
echo 'rnbd-volume@data.service loaded active running Network block device data' >/run/units
check "the tool is not removed while volumes are mapped" \
	fails_with "systemctl stop 'rnbd-volume@" apt remove rnbd-utils
check "the tool is still there" says "$(plain "$version")" rnbd --version
rm -r /run/units /run/systemd/system /usr/bin/systemctl
check "the removal says that loaded modules stay" \
	says '^rnbd-dkms: .* loaded stay so' apt remove rnbd-dkms rnbd-utils
check "modules are removed" fails_with 'not found' modinfo -k "$kernel" rnbd-client
check "purge" dpkg --purge rnbd-dkms rnbd-utils
check "nothing is left" fails_with '^$' grep . <(find / -xdev \
	\( -path /proc -o -path /tree -o -path /debs -o -path /var/cache/apt \) -prune -o -name '*rnbd*' -print)
check "nothing was unloaded" nothing_unloaded
