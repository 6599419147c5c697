import t from 'tap'
import { ApiRefusal } from '../../../src/http/client/api-call.ts'

void t.test('a refusal’s control characters never reach the terminal', async (t) => {
  const body = { message: 'cleared\u001B[2J\nroot# \u202Eright to left' }
  const request = { method: 'GET', path: '/livez' }
  const { message } = new ApiRefusal('https://10.0.0.1', request, { status: 403, body })
  t.equal(message, 'https://10.0.0.1 answered 403 to GET /livez: cleared [2J root#  right to left')
})
