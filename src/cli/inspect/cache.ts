import { namespacedName } from '../../api/kube/object.ts'
import type { HubStatus } from '../../hub/wiring/status/document.ts'
import type { StoppedStatus } from '../../hub/wiring/stopped.ts'
import { aligned } from '../aligned.ts'
import { anyStatus, omittedLine } from './hub-status.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** Exit code 1: the store cannot be read. */
export const cache = inspection<Pick<HubStatus | StoppedStatus, 'cache' | 'collections'>>({
  ofStopped: true,
  read: async (from) => {
    const { cache: size, collections } = await anyStatus(from)
    return { cache: size, collections }
  },
  table: ({ cache, collections }) =>
    collections === null
      ? 'The store cannot be read: the log of the hub says why.\n'
      : paragraphs(
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
  code: ({ collections }) => (collections === null ? 1 : 0),
})
