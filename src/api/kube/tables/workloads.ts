import type { Json, JsonObject } from '../json.ts'
import { printed, textAt, valueAt } from '../json-at.ts'
import { humanDuration } from './age.ts'
import { isConditionTrue } from '../conditions.ts'
import { labels, labelSelector, ofContainers } from './cells.ts'
import {
  ageColumn,
  column,
  integer,
  nameColumn,
  none,
  number,
  wide,
  type Column,
} from './column.ts'
import { now } from '../../../base/clock.ts'

// What makes pods (groups apps and batch).

const ofTemplate: readonly Column[] = [
  wide('Containers', ofContainers('name', 'spec', 'template')),
  wide('Images', ofContainers('image', 'spec', 'template')),
]
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
const jobEnds = ['Complete', 'Failed'] as const
const jobStates = ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'] as const

function jobStatus(job: JsonObject): Json {
  const end = jobEnds.find((type) => isConditionTrue(job, type))
  if (end) return end
  if (textAt(job, 'metadata', 'deletionTimestamp') !== '') return 'Terminating'
  return jobStates.find((type) => isConditionTrue(job, type)) ?? 'Running'
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
  'jobs.batch': [
    nameColumn,
    column('Status', jobStatus),
    column('Completions', jobCompletions),
    column('Duration', jobDuration),
    ageColumn,
    ...ofTemplate,
    selector,
  ],
}
