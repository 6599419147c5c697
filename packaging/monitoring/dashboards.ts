import { dashboard, variable } from './dashboard.ts'
import { fleetRows } from './fleet-rows.ts'
import { nodeRows } from './node-rows.ts'

/** Each dashboard by the name of its file. */
export const dashboards: Readonly<Record<string, object>> = {
  'node.json': dashboard('nodehub-node', 'nodehub: a node', nodeRows, [
    variable('instance', 'label_values(nodehub_build_info{job="$job"}, instance)'),
  ]),
  'fleet.json': dashboard('nodehub-fleet', 'nodehub: the fleet', fleetRows, []),
}
