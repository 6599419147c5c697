import t from 'tap'
import { startCloud, startTestHub } from '../../kit/hub.ts'

void t.test('unauthenticated and malformed requests are counted and logged, too', async (t) => {
  const cloud = await startCloud(t)
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--anonymous-loopback=none'],
  })
  const kubelet = hub.as('kubelet')
  const began = performance.now()
  t.equal((await kubelet.get('/api/v1/pods?a=secret')).status, 401)
  t.equal((await kubelet.get('/api/v1/pods/%zz')).status, 400)
  for (const code of [401, 400]) {
    const sample = `nodehub_requests_total{verb="get",resource="",component="kubelet",code="${code}",source="hub"}`
    t.equal(await hub.metric(sample), 1, sample)
  }
  const { path, component, source, ms } = await hub.answered(({ code }) => code === 401)
  t.strictSame(
    { path, component, source },
    { path: '/api/v1/pods', component: 'kubelet', source: 'hub' },
  )
  t.ok(ms >= 0 && ms <= performance.now() - began, 'it took no longer than it was waited for')
})
