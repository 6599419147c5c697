import { notImplemented, option, type Option } from './option.ts'
import * as is from './value.ts'

const group = 'Accepted from yurthub, without effect here' as const

const text = (help: string, remark: () => string): Option<string | undefined> =>
  option({
    type: is.orEmpty(is.text('TEXT')),
    group,
    help,
    warningFor: (value) => (value === undefined ? undefined : remark()),
  })

/** `false` needs nothing that is missing here. */
const boolean = (help: string, remark: () => string): Option<boolean | undefined> =>
  option({
    type: is.optional(is.boolean),
    group,
    help,
    warningFor: (value) => (value === false ? undefined : remark()),
  })

const duration = (help: string, remark: () => string): Option<number | undefined> =>
  option({ type: is.duration, group, help, warningFor: remark })

const list = (help: string, remark: () => string): Option<readonly string[]> =>
  option({ type: is.listOf(is.text('TEXT')), group, help, warningFor: remark })

const gone = (what: string) => (): string => `has no effect here: ${what}`
const noCoordinator = gone('there is no pool coordinator, as in yurthub since 1.7')
const noElection = gone('hubs elect no leader, as in yurthub since 1.7')
const oneLog = gone('the log goes to standard error, in JSON, a line an event')

/**
 * Flags of yurthub 1.4 to 1.7 that this release accepts without effect, so that a node's unit file
 * or manifest keeps working.
 */
export const yurthubOptions = {
  'kubelet-health-grace-period': option({
    type: is.duration,
    group,
    help: 'How long the kubelet may be silent before its node lease is no longer renewed.',
    default: 40_000,
    defaultShown: '40s',
    warningFor: notImplemented("the kubelet's own lease renewals are passed on"),
  }),
  'enable-iptables': boolean(
    'Rules for the dummy interface.',
    gone('the hub writes no such rules'),
  ),
  'node-ip': text(
    'Where other hubs reach this one.',
    notImplemented('hubs do not speak to each other'),
  ),
  'multiplexer-port': option({
    type: is.port,
    group,
    help: 'Port at which other hubs reach this one.',
    warningFor: notImplemented('hubs do not speak to each other'),
  }),
  'host-control-plane-address': text(
    'API server of the host cluster, in local mode.',
    notImplemented('there is no local mode'),
  ),
  profiling: boolean('Profiles over HTTP.', notImplemented('no profiles are served')),
  vmodule: list('klog verbosity by file.', gone('--log-level is for the whole hub')),
  'log-flush-frequency': duration('klog flushing.', gone('every line is written at once')),
  'add-dir-header': boolean('klog: folders in the heads of lines.', oneLog),
  alsologtostderr: boolean('klog: to standard error, too.', oneLog),
  'log-backtrace-at': text('klog: stack traces at a line of code.', oneLog),
  'log-dir': text('klog: folder of log files.', oneLog),
  'log-file': text('klog: a log file.', oneLog),
  'log-file-max-size': option({
    type: is.count(0, Number.MAX_SAFE_INTEGER, 'MB'),
    group,
    help: 'klog: size of a log file.',
    warningFor: oneLog,
  }),
  logtostderr: option({
    type: is.optional(is.boolean),
    group,
    help: 'klog: to standard error.',
    warningFor: (value) => (value === false ? oneLog() : undefined),
  }),
  'one-output': boolean('klog: each line once.', oneLog),
  'skip-headers': boolean('klog: lines without heads.', oneLog),
  'skip-log-headers': boolean('klog: files without heads.', oneLog),
  stderrthreshold: text('klog: the levels that go to standard error, too.', oneLog),
  'enable-coordinator': boolean('Pool coordinator.', noCoordinator),
  'coordinator-server-addr': text('Pool coordinator.', noCoordinator),
  'coordinator-storage-addr': text('Pool coordinator.', noCoordinator),
  'coordinator-storage-prefix': text('Pool coordinator.', noCoordinator),
  'leader-elect': boolean('Leader election.', noElection),
  'leader-elect-lease-duration': duration('Leader election.', noElection),
  'leader-elect-renew-deadline': duration('Leader election.', noElection),
  'leader-elect-retry-period': duration('Leader election.', noElection),
  'leader-elect-resource-lock': text('Leader election.', noElection),
  'leader-elect-resource-name': text('Leader election.', noElection),
  'leader-elect-resource-namespace': text('Leader election.', noElection),
} as const
