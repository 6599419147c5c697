import { namespacedName } from '../../api/kube/object.ts'
import type { HubStatus } from '../../hub/wiring/status/document.ts'
import { aligned } from '../aligned.ts'
import { hubStatus, omittedLine } from './hub-status.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

export const watches = inspection<HubStatus['watches']>({
  read: async (from) => (await hubStatus(from)).watches,
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
