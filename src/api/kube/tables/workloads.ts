import type { Json, JsonObject } from '../json.ts'
import { listAt, printed, textAt, valueAt } from '../json-at.ts'
import { ageOf, humanDuration } from './age.ts'
import { count, isConditionTrue, labels, labelSelector, ofContainers } from './cells.ts'
import {
  ageColumn,
  boolean,
  column,
  integer,
  nameColumn,
  none,
  number,
  text,
  textOr,
  unset,
  wide,
  type Column,
} from './column.ts'
import { now } from '../../../base/clock.ts'

// What makes pods (groups apps, batch, autoscaling, policy).

const containers = (...template: string[]): readonly Column[] => [
  wide('Containers', ofContainers('name', ...template)),
  wide('Images', ofContainers('image', ...template)),
]

const ofTemplate = containers('spec', 'template')
const selector = wide('Selector', labelSelector(none, 'spec', 'selector'))

const readyOf = (object: JsonObject): Json =>
  `${printed(number('status', 'readyReplicas')(object))}/${printed(number('spec', 'replicas')(object))}`

function jobCompletions(job: JsonObject): Json {
  const succeeded = printed(number('status', 'succeeded')(job))
  const wanted = valueAt(job, 'spec', 'completions')
  if (wanted !== undefined && wanted !== null) return `${succeeded}/${printed(wanted)}`
  const parallelism = Number(number('spec', 'parallelism')(job))
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function jobDuration(job: JsonObject): Json {
  const [start, end] = [textAt(job, 'status', 'startTime'), textAt(job, 'status', 'completionTime')]
  if (start === '') return ''
  return humanDuration((end === '' ? now() : Date.parse(end)) - Date.parse(start))
}

/** What a job's conditions say, the first that is true. */
const jobEnds = [
  ['Complete', 'Complete'],
  ['Failed', 'Failed'],
] as const
const jobStates = ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'] as const

export function jobStatus(job: JsonObject): Json {
  const end = jobEnds.find(([type]) => isConditionTrue(job, type))
  if (end) return end[1]
  if (textAt(job, 'metadata', 'deletionTimestamp') !== '') return 'Terminating'
  return jobStates.find((type) => isConditionTrue(job, type)) ?? 'Running'
}

const jobTemplate = ['spec', 'jobTemplate', 'spec'] as const

function suspended(cronJob: JsonObject): Json {
  const suspend = valueAt(cronJob, 'spec', 'suspend')
  return typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : unset
}

const lastSchedule = (cronJob: JsonObject): Json => {
  const last = valueAt(cronJob, 'status', 'lastScheduleTime')
  return last ? ageOf(last) : none
}

const orNotApplicable =
  (member: string) =>
  (budget: JsonObject): Json =>
    printed(valueAt(budget, 'spec', member)) || 'N/A'

/** A metric of an autoscaler and its target, as autoscaling/v2 writes them. */
function metric(spec: Json, status: Json | undefined): string {
  const type = textAt(spec, 'type')
  const member = `${type.charAt(0).toLowerCase()}${type.slice(1)}`
  const of = valueAt(spec, member)
  if (of === undefined) return '<unknown type>'
  const current = (value: string, unit = ''): string => {
    const found = printed(valueAt(status, member, 'current', value))
    return found === '' ? '<unknown>' : `${found}${unit}`
  }
  const target = (value: string): string => printed(valueAt(of, 'target', value))
  const average = target('averageValue')
  switch (type) {
    case 'Pods':
      return `${current('averageValue')}/${average}`
    case 'Resource':
    case 'ContainerResource': {
      const name = textAt(of, 'name')
      if (average !== '') return `${name}: ${current('averageValue')}/${average}`
      const utilization = target('averageUtilization')
      const wanted = utilization === '' ? '<auto>' : `${utilization}%`
      return `${name}: ${current('averageUtilization', '%')}/${wanted}`
    }
    default:
      return average === ''
        ? `${current('value')}/${target('value')}`
        : `${current('averageValue')}/${average} (avg)`
  }
}

const mostMetrics = 2

function metrics(autoscaler: JsonObject): Json {
  const current = listAt(autoscaler, 'status', 'currentMetrics')
  const all = listAt(autoscaler, 'spec', 'metrics').map((spec, at) => metric(spec, current[at]))
  if (all.length === 0) return none
  const shown = all.slice(0, mostMetrics).join(', ')
  return all.length > mostMetrics ? `${shown} + ${all.length - mostMetrics} more...` : shown
}

const scaleTarget = (autoscaler: JsonObject): Json =>
  `${textAt(autoscaler, 'spec', 'scaleTargetRef', 'kind')}/${textAt(autoscaler, 'spec', 'scaleTargetRef', 'name')}`

function revisionOwner(revision: JsonObject): Json {
  const owner = listAt(revision, 'metadata', 'ownerReferences').find(
    (each) => valueAt(each, 'controller') === true,
  )
  if (!owner) return none
  const [group = ''] = textAt(owner, 'apiVersion').split('/').toReversed().slice(1)
  const kind = `${textAt(owner, 'kind')}${group === '' ? '' : `.${group}`}`
  return `${kind.toLowerCase()}/${textAt(owner, 'name')}`
}

export const workloadColumns: Readonly<Record<string, readonly Column[]>> = {
  'deployments.apps': [
    nameColumn,
    column('Ready', readyOf),
    column('Up-to-date', number('status', 'updatedReplicas')),
    column('Available', number('status', 'availableReplicas')),
    ageColumn,
    ...ofTemplate,
    wide('Selector', labelSelector('', 'spec', 'selector')),
  ],
  'replicasets.apps': [
    nameColumn,
    integer('Desired', number('spec', 'replicas')),
    integer('Current', number('status', 'replicas')),
    integer('Ready', number('status', 'readyReplicas')),
    ageColumn,
    ...ofTemplate,
    selector,
  ],
  'daemonsets.apps': [
    nameColumn,
    integer('Desired', number('status', 'desiredNumberScheduled')),
    integer('Current', number('status', 'currentNumberScheduled')),
    integer('Ready', number('status', 'numberReady')),
    integer('Up-to-date', number('status', 'updatedNumberScheduled')),
    integer('Available', number('status', 'numberAvailable')),
    column('Node Selector', labels('spec', 'template', 'spec', 'nodeSelector')),
    ageColumn,
    ...ofTemplate,
    selector,
  ],
  'statefulsets.apps': [nameColumn, column('Ready', readyOf), ageColumn, ...ofTemplate],
  'controllerrevisions.apps': [
    nameColumn,
    column('Controller', revisionOwner),
    column('Revision', number('revision')),
    ageColumn,
  ],
  'jobs.batch': [
    nameColumn,
    column('Status', jobStatus),
    column('Completions', jobCompletions),
    column('Duration', jobDuration),
    ageColumn,
    ...ofTemplate,
    selector,
  ],
  'cronjobs.batch': [
    nameColumn,
    column('Schedule', text('spec', 'schedule')),
    column('Timezone', textOr(none, 'spec', 'timeZone')),
    boolean('Suspend', suspended),
    integer('Active', count('status', 'active')),
    column('Last Schedule', lastSchedule),
    ageColumn,
    ...containers(...jobTemplate, 'template'),
    wide('Selector', labelSelector(none, ...jobTemplate, 'selector')),
  ],
  'poddisruptionbudgets.policy': [
    nameColumn,
    column('Min Available', orNotApplicable('minAvailable')),
    column('Max Unavailable', orNotApplicable('maxUnavailable')),
    integer('Allowed Disruptions', number('status', 'disruptionsAllowed')),
    ageColumn,
  ],
  'horizontalpodautoscalers.autoscaling': [
    nameColumn,
    column('Reference', scaleTarget),
    column('Targets', metrics),
    column('MinPods', (object) => printed(valueAt(object, 'spec', 'minReplicas')) || unset),
    column('MaxPods', number('spec', 'maxReplicas')),
    column('Replicas', number('status', 'currentReplicas')),
    ageColumn,
  ],
}
