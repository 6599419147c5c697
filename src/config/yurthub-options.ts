import { withoutEffect } from './former-options.ts'
import { notImplemented, option } from './option.ts'
import * as is from './value.ts'

const group = 'Accepted from yurthub, without effect here'
const accepted = withoutEffect(group)
const text = is.text('TEXT')

const gone = (what: string): string => `has no effect here: ${what}`
const noCoordinator = gone('there is no pool coordinator, as in yurthub since 1.7')
const noElection = gone('hubs elect no leader, as in yurthub since 1.7')
const oneLog = gone('the log goes to standard error, in JSON, a line an event')
const noPeers = notImplemented('hubs do not speak to each other')

/**
 * Flags of yurthub 1.4 to 1.7 that this release accepts without effect, so that a node's unit file
 * or manifest keeps working.
 */
export const yurthubOptions = {
  'kubelet-health-grace-period': accepted(
    is.duration,
    'How long the kubelet may be silent before its node lease is no longer renewed.',
    notImplemented("the kubelet's own lease renewals are passed on"),
  ),
  'gc-frequency': accepted(
    is.count(1, 1_000_000, 'MINUTES'),
    'Minutes between two garbage collections of the store.',
    notImplemented('the hub evicts what was confirmed longest ago when there is need for the room'),
  ),
  'enable-iptables': accepted(
    is.boolean,
    'Rules for the dummy interface.',
    gone('the hub writes no such rules'),
  ),
  'node-ip': accepted(text, 'Where other hubs reach this one.', noPeers),
  'multiplexer-port': accepted(is.port, 'Port at which other hubs reach this one.', noPeers),
  'host-control-plane-address': accepted(
    text,
    'API server of the host cluster, in local mode.',
    notImplemented('there is no local mode'),
  ),
  profiling: accepted(is.boolean, 'Profiles over HTTP.', notImplemented('no profiles are served')),
  vmodule: accepted(
    is.listOf(text),
    'klog verbosity by file.',
    gone('--log-level is for the whole hub'),
  ),
  'log-flush-frequency': accepted(
    is.duration,
    'klog flushing.',
    gone('every line is written at once'),
  ),
  'add-dir-header': accepted(is.boolean, 'klog: folders in the heads of lines.', oneLog),
  alsologtostderr: accepted(is.boolean, 'klog: to standard error, too.', oneLog),
  'log-backtrace-at': accepted(text, 'klog: stack traces at a line of code.', oneLog),
  'log-dir': accepted(text, 'klog: folder of log files.', oneLog),
  'log-file': accepted(text, 'klog: a log file.', oneLog),
  'log-file-max-size': accepted(
    is.count(0, Number.MAX_SAFE_INTEGER, 'MB'),
    'klog: size of a log file.',
    oneLog,
  ),
  logtostderr: option({
    type: is.optional(is.boolean),
    group,
    help: 'klog: to standard error.',
    warningFor: (value) => (value === false ? oneLog : undefined),
  }),
  'one-output': accepted(is.boolean, 'klog: each line once.', oneLog),
  'skip-headers': accepted(is.boolean, 'klog: lines without heads.', oneLog),
  'skip-log-headers': accepted(is.boolean, 'klog: files without heads.', oneLog),
  stderrthreshold: accepted(text, 'klog: the levels that go to standard error, too.', oneLog),
  'enable-coordinator': accepted(is.boolean, 'Pool coordinator.', noCoordinator),
  'coordinator-server-addr': accepted(text, 'Pool coordinator.', noCoordinator),
  'coordinator-storage-addr': accepted(text, 'Pool coordinator.', noCoordinator),
  'coordinator-storage-prefix': accepted(text, 'Pool coordinator.', noCoordinator),
  'leader-elect': accepted(is.boolean, 'Leader election.', noElection),
  'leader-elect-lease-duration': accepted(is.duration, 'Leader election.', noElection),
  'leader-elect-renew-deadline': accepted(is.duration, 'Leader election.', noElection),
  'leader-elect-retry-period': accepted(is.duration, 'Leader election.', noElection),
  'leader-elect-resource-lock': accepted(text, 'Leader election.', noElection),
  'leader-elect-resource-name': accepted(text, 'Leader election.', noElection),
  'leader-elect-resource-namespace': accepted(text, 'Leader election.', noElection),
} as const
