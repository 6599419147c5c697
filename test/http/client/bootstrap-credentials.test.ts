import t from 'tap'
import { parseBootstrapToken } from '../../../src/config/bootstrap.ts'
import { bootstrapFault } from '../../../src/http/client/bootstrap-credentials.ts'
import { joinToken, startJoinable, type JoinableCloud } from '../../kit/joinable.ts'

const tried = (
  { cloud, caHash }: JoinableCloud,
  { token = joinToken, hash = caHash, ms = 20_000 } = {},
) =>
  bootstrapFault(
    [new URL(cloud.url)],
    {
      token: parseBootstrapToken(token),
      file: undefined,
      caHashes: [hash],
      anyCa: false,
      ca: undefined,
    },
    ms,
  )

void t.test('a trial finds what would keep a hub from its certificate', async (t) => {
  const joinable = await startJoinable(t)
  const { cloud } = joinable
  t.equal(await tried(joinable), undefined)
  const hash = `sha256:${'0'.repeat(64)}`
  t.match(await tried(joinable, { hash }), /which --discovery-token-ca-cert-hash does not name/)
  t.match(
    await tried(joinable, { token: 'ghijkl.0123456789abcdef' }),
    /is not signed with the bootstrap token ghijkl/,
  )
  cloud.sandbox.revoke(joinToken)
  const refused = await tried(joinable)
  t.match(refused, /the bootstrap token is not accepted: .* answered 401/)
  t.notMatch(refused, joinToken.split('.')[1])
  t.strictSame(joinable.requests, [], 'no certificate is requested')
  {
    using _ = cloud.sandbox.faults.freeze(() => true)
    t.match(await tried(joinable, { ms: 50 }), /no API server has answered within 0\.05 s/)
  }
  await cloud.unplug()
  t.match(await tried(joinable), /ECONNREFUSED/)
})
