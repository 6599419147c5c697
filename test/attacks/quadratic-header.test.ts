/**
 * A head of 60 KiB costs the hub as much as four heads of 15 KiB, whatever its content: otherwise a
 * caller without credentials could stop the process, with the kubelet's requests, with one field.
 */
import t from 'tap'
import { onlineNode } from '../kit/hub.ts'
import { isSuperLinear } from '../kit/super-linear.ts'

/**
 * A field of a request whose text grows with `length`, between a beginning and an end that keep it
 * from being what is looked for.
 */
const between =
  (name: string, start: string, unit: string, end: string) =>
  (length: number): Record<string, string> => ({
    [name]: `${start}${unit.repeat(length / unit.length)}${end}`,
  })

const fields = {
  'blanks within Authorization': between('Authorization', 'x', ' ', 'y'),
  'tabs within Authorization': between('Authorization', 'x', '\t', 'y'),
  'a token without end': between('Authorization', 'Bearer x', '=', 'y'),
  'empty media types': between('Accept', 'x', ',', 'y'),
  'parameters of a media type': between('Accept', 'x', ';q=0', 'y'),
  'blanks within a coding': between('Accept-Encoding', 'gzip;', ' ;q=0', 'y'),
  'names in Connection': between('Connection', 'x', ' ,', 'y'),
  'protocols of a WebSocket': between('Sec-WebSocket-Protocol', 'x', ' ,', 'y'),
  'a program without a name': between('User-Agent', 'kubectl-', '1.', 'y/z'),
  'a host of colons': between('Host', 'x', ':1', 'y'),
}

void t.test('a long head costs what its length costs', async (t) => {
  const { hub } = await onlineNode(t)
  const client = hub.as('stranger')
  const ask = (headers: Record<string, string>) => client.send('/api/v1/pods', { headers })
  for (const [what, field] of Object.entries(fields)) {
    await ask(field(100))
    t.notOk(await isSuperLinear(ask, field(15_000), field(60_000)), what)
  }
})
