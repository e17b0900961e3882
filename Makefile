# SPDX-License-Identifier: GPL-2.0
# RTRS and RNBD as modules, built outside of a kernel tree. `make help` lists
# what there is.

ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
RIG := $(ROOT)/tools/testing

# The running kernel's build tree; if there's none, the newest one installed.
running := /lib/modules/$(shell uname -r)/build
installed := $(shell ls -d /lib/modules/*/build /usr/src/linux-headers-*-amd64 2>/dev/null | sort -V | tail -n 1)
ifeq ($(KDIR),)
KDIR := $(if $(wildcard $(running)/Makefile),$(running),$(installed))
endif

options := CONFIG_INFINIBAND_RTRS=m CONFIG_INFINIBAND_RTRS_CLIENT=m \
	CONFIG_INFINIBAND_RTRS_SERVER=m CONFIG_BLK_DEV_RNBD=y \
	CONFIG_BLK_DEV_RNBD_CLIENT=m CONFIG_BLK_DEV_RNBD_SERVER=m
# The suites of unit tests, built into the modules, for kernels that have KUnit.
ifneq ($(KUNIT),)
options += CONFIG_INFINIBAND_RTRS_KUNIT_TEST=y CONFIG_BLK_DEV_RNBD_KUNIT_TEST=y
endif
kbuild = $(MAKE) -C $(KDIR) M=$(ROOT) $(options)

# A vendor's RDMA stack (MLNX_OFED, DOCA) brings an ib_core of its own, and modules that were
# built for the kernel's crash on it. If there is one, modules are built with its headers and
# symbols for that kernel, or not at all. With OFED_ROOT= the kernel's own stack is taken.
OFED_ROOT ?= /usr/src/ofa_kernel
builds := $(filter modules modules_install rdma-stack,$(or $(MAKECMDGOALS),modules))
ifneq ($(and $(builds),$(OFED_ROOT)),)
kver := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' $(KDIR)/include/generated/utsrelease.h 2>/dev/null)
vendor := $(wildcard $(OFED_ROOT)) $(shell find /lib/modules/$(kver)/updates \
	/lib/modules/$(kver)/extra -name 'ib_core.ko*' 2>/dev/null)
# "default" is one kernel's as well: its name or its configuration says which.
ofed := $(firstword $(wildcard $(kver:%=$(OFED_ROOT)/%) $(kver:%=$(OFED_ROOT)/*/%)) \
	$(filter %/$(kver),$(realpath $(OFED_ROOT)/default)) $(if $(shell \
	grep -sxF 'KVERSION=$(kver)' $(OFED_ROOT)/default/configure.mk.kernel),$(OFED_ROOT)/default))
ofed_lacks := $(if $(wildcard $(ofed)/include/rdma/ib_verbs.h),,include/rdma/ib_verbs.h) \
	$(if $(shell grep -sw ib_register_client $(ofed)/Module.symvers),,Module.symvers)
endif
options += OFED=$(ofed) $(if $(ofed),KBUILD_EXTRA_SYMBOLS=$(ofed)/Module.symvers)

# The set of modules that tests run: ours, or the in-tree driver's (intree).
MODULES ?= ours
# The kernel that they run on: Debian 12's (6.1, or stock), 13's (6.12), unstable's (7.2),
# or one with the checkers on (debug). Tests run on all of them if none is given, and all
# else on stock.
export KDIR KERNEL MODULES RELEASES T JOBS ROUNDS RUNTIME CELLS SEED ONCE LIMIT MATRIX RESULTS \
	CLOCK TABLES

.PHONY: modules modules_install clean help setup test quick record soak boot vm kunit demo \
	demo-shell bench check print-kdir tools tools_install deb tree doc pictures test-tree \
	test-packages

modules: $(if $(KDIR),,need-kdir) rdma-stack
	+$(kbuild) modules

modules_install: $(if $(KDIR),,need-kdir)
	+$(kbuild) INSTALL_MOD_DIR=$(or $(INSTALL_MOD_DIR),updates) modules_install

clean: $(if $(KDIR),,need-kdir)
	+$(kbuild) clean
	+$(MAKE) -C $(ROOT)/tools/rnbd clean
	+$(MAKE) -C $(ROOT)/tools/boot clean

# The tool rnbd, units and rules for boot; prefix= and DESTDIR= are as usual.
tools:
	+$(MAKE) -C $(ROOT)/tools/rnbd

tools_install:
	+$(MAKE) -C $(ROOT)/tools/rnbd install
	+$(MAKE) -C $(ROOT)/tools/boot install
	+$(MAKE) -C $(ROOT)/tools/monitoring install

# Debian packages of all this, in this folder
deb:
	@$(ROOT)/tools/deb

# The manuals as web pages
doc:
	@command -v sphinx-build >/dev/null || \
		{ echo "make doc needs sphinx-build (Debian: python3-sphinx)" >&2; false; }
	@sphinx-build -q -W --keep-going -b html $(ROOT)/Documentation $(ROOT)/html
	@echo "The manuals are in $(ROOT)/html; begin with index.html."

# Those of README.md and of the manuals, from the data in Documentation/pictures and the drivers'
# tables. make check says when they are out of date. RECORD=1: first takes over what make bench
# and make demo have measured.
pictures:
	@$(RIG)/setup.sh pictures
	@$(RIG)/pictures.py $(if $(RECORD),record,draw)

# LINUX: an unpacked source of Linux
tree:
	@$(ROOT)/tools/tree "$(LINUX)"

.PHONY: need-kdir rdma-stack
rdma-stack:
	@$(if $(strip $(vendor)),$(if $(strip $(ofed_lacks)),$(error A vendor's RDMA stack is \
		installed ($(firstword $(vendor))), but $(or $(ofed),$(OFED_ROOT)) lacks what modules \
		for Linux $(kver) need of it: $(strip $(ofed_lacks)). Install the stack's \
		development files for that kernel. With OFED_ROOT= (empty) modules are built for the kernel's \
		own stack))):

need-kdir:
	@echo "No kernel build tree found. Install one (Debian: apt-get install" >&2
	@echo "linux-headers-amd64, or run 'make setup'), or give one with KDIR=." >&2
	@false

print-kdir:
	@echo $(KDIR)

help:
	@echo 'make [modules]        build the five modules against KDIR ($(KDIR))'
	@echo 'make modules_install  install them, as root'
	@echo 'make tools            build the tool rnbd; it needs libjson-c-dev'
	@echo 'make tools_install    install it, as root, below prefix=/usr/local, with what maps'
	@echo '                      volumes at boot'
	@echo 'make deb              Debian packages of both: rnbd-dkms, rnbd-utils'
	@echo 'make doc              the manuals as web pages, in html/'
	@echo 'make pictures         draw the pictures of the manuals from their data, if it has changed'
	@echo 'make clean            remove what was built'
	@echo 'make tree LINUX=...   lay the drivers into an unpacked source of Linux'
	@echo
	@echo 'These install the Debian packages they need, and run virtual machines:'
	@echo 'make demo             a volume of one machine as a disk of another, step by step'
	@echo 'make demo-shell       the same, then a shell on the client'
	@echo 'make quick            build, make check, unit tests and eight tests, in three minutes'
	@echo 'make test [T="..."]   all tests, or those named (patterns are fine), each on the'
	@echo '                      kernels that it needs'
	@echo '  KERNEL=debug        on a kernel with KASAN, lockdep and kmemleak, built first;'
	@echo '                      stock, 6.12, 7.2: on those of Debian 12, 13 and unstable'
	@echo '  LIMIT=75            those that there is time for in so many minutes'
	@echo '  ROUNDS=50           how often tests repeat what they repeat'
	@echo 'make record           merge the results of the last run into the table of times'
	@echo 'make test-tree        the drivers in the sources of three kernels (T=6.12)'
	@echo 'make test-packages    those of the Debian packages, on RELEASES="12 13 unstable"'
	@echo 'make soak SOAK=60     these for an hour in all, in turn'
	@echo 'make kunit            the unit tests alone, on the debug kernel'
	@echo 'make boot             volumes that are mapped at boot, on Debian 12 and 13 with systemd'
	@echo 'make vm               a shell in a guest with the modules loaded'
	@echo 'make bench            this driver, the in-tree one and NVMe over RDMA compared'
	@echo '                      (CELLS="4k-*" WHAT="ours-Y nvme" TABLES="speed costs",'
	@echo '                      CLOCK=wall)'
	@echo 'make check            warnings, sparse, checkpatch, kernel-doc: all silent?'
	@echo 'make setup            packages and guests, without running anything'

# KDIR is left to the setup, as the packages may bring it.
setup:
	@$(RIG)/setup.sh guest

test:
	@$(RIG)/run-tests

quick:
	@QUICK=1 $(RIG)/run-tests

record:
	@$(RIG)/history.py

test-packages:
	@$(RIG)/packages/run

SOAK ?= 60
soak:
	@SOAK=$(SOAK) KERNEL=$(or $(KERNEL),stock) $(RIG)/run-tests

test-tree:
	@$(RIG)/tree.sh $(T)

kunit:
	@KERNEL=debug T=kunit $(RIG)/run-tests; ret=$$?; \
		cat $(ROOT)/test-results/debug/01-vm/vm/share/kunit.ktap; exit $$ret

# Debian releases that boot, 12 and 13
boot:
	@$(RIG)/boot $(or $(RELEASES),12 13)

vm:
	@$(RIG)/vm

demo:
	@$(RIG)/demo

demo-shell:
	@$(RIG)/demo --shell

bench:
	@$(RIG)/bench $(WHAT)

check:
	@$(RIG)/check.sh
