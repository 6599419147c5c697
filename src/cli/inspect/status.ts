import type { HubStatus } from '../../hub/wiring/status/status.ts'
import type { StoppedStatus } from '../../hub/wiring/stopped.ts'
import { aligned } from '../aligned.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** The whole status document. Exit code 1: the hub is stopped, or not ready. */
export const status = inspection<HubStatus | StoppedStatus>({
  ofStopped: true,
  read: (from) => from.report('status'),
  table: (report) => ('stopped' in report ? stoppedTable(report) : runningTable(report)),
  code: (report) => ('ready' in report && report.ready ? 0 : 1),
})

const runningTable = ({
  node,
  version,
  ready,
  link,
  checks,
  notes,
  upstreams,
  saturation,
  lastHour,
  at,
}: HubStatus): string =>
  paragraphs(
    `nodehub ${version} on ${node} is ${ready ? 'ready' : 'not ready'} and ${linkText(link)}.\n`,
    aligned(['CHECK', 'RESULT'], checks.map(checkRow)),
    checks.map(remedyLine).join(''),
    aligned(
      ['API SERVER', 'HEALTH', 'SINCE'],
      upstreams.map(({ origin, health, since }) => [origin, health, since]),
    ),
    upstreams.map(upstreamLine).join(''),
    outageLine(lastHour, at) + fullLine(saturation),
    notes.map((line) => `${line}\n`).join(''),
  )

/** With the marks and the words of `/readyz?verbose`. */
function checkRow({ name, fault, required }: HubStatus['checks'][number]): readonly string[] {
  if (fault === undefined) return [`[+]${name}`, 'ok']
  return [`[-]${name}`, required ? fault : `${fault}; readiness does not depend on it now`]
}

const remedyLine = ({ name, remedy }: HubStatus['checks'][number]): string =>
  remedy === undefined ? '' : `About ${name}: ${remedy}.\n`

const upstreamLine = ({ origin, remedy }: HubStatus['upstreams'][number]): string =>
  remedy === undefined ? '' : `About ${origin}: ${remedy}\n`

/** That the hub was offline lately, where it is online again, too. */
function outageLine({ online = [] }: Partial<HubStatus['lastHour']>, at: string): string {
  const minutes = online.filter((each) => each === false).length
  if (minutes === 0) return ''
  const ago = online.length - 1 - online.lastIndexOf(false)
  const last = new Date(Date.parse(at) - ago * 60_000).toISOString().slice(0, 16)
  return `Offline in ${minutes} of the last ${online.length} minutes, the last at ${last}Z.\n`
}

/**
 * What was nearly full at some time: a figure that changes with each look would say nothing. A hub
 * that was started before the program was upgraded says nothing of it.
 */
function fullLine(saturation: HubStatus['saturation'] = {}): string {
  const full = Object.entries(saturation)
    .map(([name, { most, limit }]) => ({ name, percent: Math.round((100 * most) / limit) }))
    .filter(({ percent }) => percent >= nearlyFull)
    .map(({ name, percent }) => `${name} (${percent} %)`)
  return full.length === 0 ? '' : `Nearly full within the last hour: ${full.join(', ')}.\n`
}

const nearlyFull = 90

const stoppedTable = ({ node, cache, collections, boot, certificates }: StoppedStatus): string =>
  paragraphs(
    `The hub on ${node} is stopped.\n`,
    aligned(
      ['ON THE DISK', 'FOUND'],
      [
        [
          'cache',
          `${cache.bytes} bytes, ${collections.items.length + collections.omitted} collections`,
        ],
        [
          'boot',
          boot === null
            ? 'no verdict'
            : boot.ready
              ? 'would come back'
              : 'would not come back: see inspect boot',
        ],
        ...certificates.map(({ use, notAfter, fault }) => [
          `certificate, ${use}`,
          fault ?? `valid until ${notAfter}`,
        ]),
      ],
    ),
  )

function linkText({ online, since }: HubStatus['link']): string {
  if (online === null) return 'has not probed an API server yet'
  return `${online ? 'online' : 'offline'} since ${since}`
}
