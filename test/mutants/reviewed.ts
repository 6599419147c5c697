/**
 * The mutants that survived all tests of the first release, where the faulty code is now, each with
 * the test that kills it. `npm run mutants -- --reviewed` tries them.
 */
import type { Mutant } from './places.ts'

/** `was` is found once in its file. */
interface Reviewed extends Required<Pick<Mutant, 'path' | 'was' | 'becomes' | 'breaks' | 'test'>> {}

const metric = (path: string, was: string, test: string, counts: string): Reviewed => ({
  path,
  was,
  becomes: 'undefined',
  breaks: `never counted: ${counts}`,
  test: `test/${test}.test.ts`,
})

const manifest = (path: string, was: string, becomes: string, breaks: string): Reviewed => ({
  path: `src/cluster/${path}.ts`,
  was,
  becomes,
  breaks: `manifests: ${breaks}`,
  test: 'test/cluster/install/manifests.test.ts',
})

export const reviewed: readonly Reviewed[] = [
  {
    path: 'src/hub/pipeline/dispatch.ts',
    was: 'if (sent && !changesNothing(exchange)) throw error',
    becomes: '',
    breaks: 'a write that may have taken effect is sent again',
    test: 'test/scenarios/same-request.test.ts',
  },
  {
    path: 'src/hub/answers/keys.ts',
    was: '    identity,\n    path: info.path,',
    becomes: "    identity: 'all',\n    path: info.path,",
    breaks: 'offline a caller gets the discovery documents of another',
    test: 'test/hub/answers/keys.test.ts',
  },
  metric(
    'src/hub/wiring/enabled-filters.ts',
    'metrics.filterDecisions.add({ filter, result })',
    'scenarios/filter-inputs',
    'decisions of filters',
  ),
  metric(
    'src/hub/wiring/proxies.ts',
    'metrics.brokenAnswers.add()',
    'scenarios/cut-lists',
    'answers that break off',
  ),
  metric(
    'src/hub/wiring/shared-cachers.ts',
    'cacherWatchersEnded.add({ shared, reason })',
    'scenarios/shared-cachers',
    'shared watches that the hub ends',
  ),
  metric(
    'src/hub/pipeline/pipeline.ts',
    "parts.metrics.connectionsCut.add({ reason: 'memory' })",
    'scenarios/memory',
    'watches that are cut for memory',
  ),
  metric(
    'src/hub/pipeline/trace.ts',
    'metrics.requestDuration.observe({ verb: info.verb, source: reply.from }, ms / 1000)',
    'scenarios/life',
    'the durations of requests',
  ),
  metric(
    'src/cluster/cluster.ts',
    'metrics.writes.add({ kind })',
    'cluster/cluster',
    'the writes of the controller of pools',
  ),
  metric(
    'src/hub/wiring/gauges.ts',
    'metrics.yurthubErrorKeys.set(store.missedCollections)',
    'scenarios/yurthub-metrics',
    'collections that the store did not take',
  ),
  {
    path: 'src/cluster/leadership.ts',
    was: 'await this.#release()',
    becomes: '',
    breaks: 'a leader that stops keeps the lease, and the others wait for its end',
    test: 'test/cluster/leadership.test.ts',
  },
  {
    path: 'src/hub/answers/offline.ts',
    was: "if (exchange.method === 'HEAD') throw neverCached()",
    becomes: '',
    breaks: 'offline the cache answers a HEAD',
    test: 'test/hub/answers/offline.test.ts',
  },
  {
    path: 'src/hub/cache/shared/self-subject-access-review.ts',
    was: "(['list', 'watch'] as const)",
    becomes: "(['list'] as const)",
    breaks: 'a caller that may list and not watch is given shared watches',
    test: 'test/scenarios/shared-cachers.test.ts',
  },
  {
    path: 'src/cluster/api/rate-limit.ts',
    was: 'if (this.#left < 0) await sleep((-this.#left / this.#perSecond) * 1000, signal)',
    becomes: '',
    breaks: 'requests of the controller are not limited',
    test: 'test/cluster/api/rate-limit.test.ts',
  },
  {
    path: 'src/node/join/join.ts',
    was: 'of plan.changes) if (after)',
    becomes: 'of plan.changes.toReversed()) if (after)',
    breaks: 'join changes the flags of the kubelet first, which then finds no hub',
    test: 'test/cli/join-command.test.ts',
  },
  {
    path: 'src/hub/store/log/state.ts',
    was: 'if (collection.members.size !== of.size) this.#evictCollection(address)',
    becomes: '',
    breaks: 'a list that lost its base to a damaged record looks whole',
    test: 'test/hub/store/log/recovery.test.ts',
  },
  manifest(
    'install/manifests',
    '...nodesKeptInPools(actors),',
    '',
    'no policy refuses what must not change',
  ),
  manifest(
    'admission/policy',
    "validationActions: ['Deny']",
    "validationActions: ['Audit']",
    'policies refuse nothing',
  ),
  manifest(
    'admission/policy',
    "'Fail' : 'Ignore'",
    "'Ignore' : 'Ignore'",
    'without a webhook any write of a pool passes',
  ),
  manifest(
    'admission/policy',
    "'Fail' : 'Ignore'",
    "'Fail' : 'Fail'",
    'without a webhook no kubelet can register',
  ),
  manifest(
    'admission/conditions',
    'any(isCreate, nodeChanges)',
    "'true'",
    'each status of each kubelet goes to a webhook',
  ),
  manifest(
    'admission/conditions',
    '`!(${isOneOf(user, controllers)})`',
    "'true'",
    'the controller waits for its own webhooks',
  ),
  manifest(
    'install/roles',
    "'get list watch patch', name)",
    "'get list watch patch')",
    'the controller may change the webhooks of all others',
  ),
  manifest(
    'install/roles',
    "rule('apps.openyurt.io', 'nodepools/status', 'patch'),",
    '',
    'the controller may not write the status of pools',
  ),
  manifest(
    'crd/node-pool-schema',
    "'x-kubernetes-validations': rulesFor(version),",
    '',
    'the definition of pools has no rules',
  ),
  manifest(
    'install/workload',
    'minAvailable: 1',
    'minAvailable: 0',
    'a drain may end both replicas at once',
  ),
  manifest(
    'install/workload',
    'allowPrivilegeEscalation: false',
    'allowPrivilegeEscalation: true',
    'the container may gain rights',
  ),
  {
    path: 'src/http/client/session.ts',
    was: 'id === undefined || id > this.#lastStreamId',
    becomes: 'false',
    breaks: 'a watch that a GOAWAY proves unprocessed fails, in place of being sent again',
    test: 'test/http/client/session.test.ts',
  },
  {
    path: 'src/cluster/leadership.ts',
    was: ' && timeOfDay() - renewed.time < renewMs',
    becomes: '',
    breaks: 'after its machine has slept a process leads beside another',
    test: 'test/cluster/leadership.test.ts',
  },
]

/** Throws where the text is not found exactly once. */
export function placed(each: Reviewed, source: string): Mutant {
  const { path, was } = each
  const [before = '', ...after] = source.split(was)
  if (after.length !== 1) throw new Error(`found ${after.length} times in ${path}: ${was}`)
  const id = `${path}:${before.split('\n').length}:reviewed`
  return { ...each, id, kind: 'reviewed', on: was, start: before.length, reachedAt: before.length }
}
