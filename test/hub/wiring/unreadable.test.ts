import t from 'tap'
import { unreadable } from '../../../src/hub/wiring/unreadable.ts'

void t.test('only a 403 is explained by missing rights', async (t) => {
  const said = (code: number): string => {
    const { why, advice } = unreadable(code)
    return `${why}${advice}`
  }
  t.match(said(403), /does not let this node .*manifests --part rbac has the right$/)
  t.match(said(401), /does not accept the hub's credentials, \/readyz\?verbose says why$/)
  t.match(said(200), /no list of them: is that an API server\?$/)
  for (const code of [200, 401, 404, 406, 503]) t.notMatch(said(code), 'rbac', `${code}`)
})
