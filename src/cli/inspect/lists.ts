import { namespacedName } from '../../api/kube/object.ts'
import type { HubStatus } from '../../hub/wiring/status/status.ts'
import type { StoppedStatus } from '../../hub/wiring/stopped.ts'
import { aligned } from '../aligned.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** A line for the items that a bounded list leaves out. */
const omittedLine = ({ omitted }: { readonly omitted: number }): string =>
  omitted === 0 ? '' : `${omitted} more are not shown.\n`

/** Exit code 1: no API server is healthy. */
export const upstreams = inspection<HubStatus['upstreams']>({
  read: async (from) => (await from.report<HubStatus>('status')).upstreams,
  table: (all) =>
    paragraphs(
      aligned(
        ['API SERVER', 'HEALTH', 'SINCE', 'AVAILABILITY', 'PROBE', 'CONNECTIONS'],
        all.map((each) => [
          each.origin,
          each.health,
          each.since,
          each.availability,
          each.probeMs === undefined ? '-' : `${each.probeMs} ms`,
          String(each.connections),
        ]),
      ),
      aligned(
        ['API SERVER', 'LAST FAILED', 'TIMES', 'FAILURE'],
        all.flatMap(({ origin, failures }) =>
          failures.map(({ at, times, message }) => [origin, at, String(times), message]),
        ),
      ),
    ),
  code: (all) => (all.some(({ health }) => health === 'healthy') ? 0 : 1),
})

export const cache = inspection<Pick<HubStatus | StoppedStatus, 'cache' | 'collections'>>({
  ofStopped: true,
  read: async (from) => {
    const { cache: size, collections } = await from.report<HubStatus | StoppedStatus>('status')
    return { cache: size, collections }
  },
  table: ({ cache, collections }) =>
    paragraphs(
      `${cache.bytes}${'limit' in cache ? ` of at most ${cache.limit}` : ''} bytes are on the disk.\n`,
      aligned(
        ['COLLECTION', 'READ BY', 'SELECTOR', 'VERSION', 'CONFIRMED', 'OBJECTS', 'WATCHERS'],
        collections.items.map((each) => [
          namespacedName({ namespace: each.namespace, name: each.resource }),
          each.identity,
          [each.labelSelector, each.fieldSelector].filter((one) => one !== '').join(' '),
          each.resourceVersion,
          each.confirmedAt,
          String(each.objects),
          String(each.watchers),
        ]),
      ),
      omittedLine(collections),
    ),
})

export const watches = inspection<HubStatus['watches']>({
  read: async (from) => (await from.report<HubStatus>('status')).watches,
  table: (all) =>
    all.items.length === 0
      ? 'No component has a watch open.\n'
      : paragraphs(
          aligned(
            ['COMPONENT', 'COLLECTION', 'SELECTOR', 'FROM', 'OPEN', 'SINCE'],
            all.items.map((each) => [
              each.component,
              namespacedName({ namespace: each.namespace, name: each.resource }),
              [each.labelSelector, each.fieldSelector].filter((one) => one !== '').join(' '),
              each.source ?? '-',
              String(each.open),
              each.since,
            ]),
          ),
          omittedLine(all),
        ),
})

/** Exit code 1: a filter waits for an input, or has failed. */
export const filters = inspection<HubStatus['filters']>({
  read: async (from) => (await from.report<HubStatus>('status')).filters,
  table: (all) =>
    aligned(
      ['FILTER', 'STATE', 'WAITS FOR', 'EDITED', 'WITHHELD', 'FAILED'],
      all.map(({ name, state, waitsFor, edited, withheld, failed }) => [
        name,
        state,
        waitsFor.join(' '),
        String(edited),
        String(withheld),
        String(failed),
      ]),
    ),
  code: (all) => (all.some(({ state, failed }) => state === 'waiting' || failed > 0) ? 1 : 0),
})

/** Exit code 1: one is not valid now. */
export const certificates = inspection<HubStatus['certificates']>({
  ofStopped: true,
  read: async (from) => (await from.report<HubStatus | StoppedStatus>('status')).certificates,
  table: (all) =>
    aligned(
      ['USE', 'VALID UNTIL', 'FILE', 'NAMES', 'FAULT'],
      all.map(({ use, notAfter, file, names, fault, renewalFault }) => [
        use,
        notAfter,
        file ?? '-',
        names,
        [fault, renewalFault && `no new one is obtained: ${renewalFault}`]
          .filter((each) => each !== undefined)
          .join('; '),
      ]),
    ),
  code: (all) => (all.some(({ fault }) => fault !== undefined) ? 1 : 0),
})
