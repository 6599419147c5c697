import t from 'tap'
import { startCloud, startTestHub } from '../kit/hub.ts'
import { lives } from './protobuf-life.ts'

void t.test('F24: protobuf passes both ways, updates and refusals included', async (t) => {
  await lives(t, await startTestHub(t, { upstreams: [await startCloud(t)] }))
})
