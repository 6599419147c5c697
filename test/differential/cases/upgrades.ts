import { get, shared, type RequestCase, type Fields } from '../request-case.ts'

const pod = `/api/v1/namespaces/${shared}/pods/a`

const webSocket = (protocol: string, more: Fields = {}): Fields => ({
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Protocol': protocol,
  ...more,
})

const spdy: Fields = {
  Connection: 'Upgrade',
  Upgrade: 'SPDY/3.1',
  'X-Stream-Protocol-Version': ['v4.channel.k8s.io', 'v3.channel.k8s.io'],
}

const post = (target: string, headers: Fields): RequestCase => ({ method: 'POST', target, headers })

/**
 * Requests to change the protocol of a connection: accepted by a sandbox, refused where no kubelet
 * is to be reached.
 */
export const upgrades: readonly RequestCase[] = [
  get(`${pod}/exec?command=ls&stdout=true`, webSocket('v5.channel.k8s.io')),
  get(`${pod}/exec?command=ls&stdout=true`, webSocket('v5.channel.k8s.io, v4.channel.k8s.io')),
  get(`${pod}/exec?command=ls&stdout=true`, webSocket('nothing')),
  get(
    `${pod}/exec?command=ls&stdout=true`,
    webSocket('v5.channel.k8s.io', { 'Sec-WebSocket-Version': '8' }),
  ),
  get(
    `${pod}/exec?command=ls&stdout=true`,
    webSocket('v5.channel.k8s.io', { 'Sec-WebSocket-Key': undefined }),
  ),
  get(`${pod}/exec`, webSocket('v5.channel.k8s.io')),
  get(`${pod}/attach?stdout=true`, webSocket('v5.channel.k8s.io')),
  get(`${pod}/portforward?ports=80`, webSocket('v2.portforward.k8s.io')),
  get(`${pod}/portforward?ports=80`, webSocket('SPDY/3.1+portforward.k8s.io')),
  get(`${pod}-not/exec?command=ls`, webSocket('v5.channel.k8s.io')),
  get(
    `${pod}/exec?command=ls`,
    webSocket('v5.channel.k8s.io', { Authorization: 'Bearer rubbish' }),
  ),
  get(
    `${pod}/exec?command=ls`,
    webSocket('v5.channel.k8s.io', { Connection: 'keep-alive, Upgrade' }),
  ),
  get(`${pod}/exec?command=ls`, webSocket('v5.channel.k8s.io', { Connection: 'keep-alive' })),
  get(`${pod}/exec?command=ls`),
  get(`${pod}/portforward`),
  get(`${pod}/attach`),
  post(`${pod}/exec?command=ls&stdout=true`, spdy),
  post(`${pod}/attach?stdout=true`, spdy),
  post(`${pod}/portforward`, { ...spdy, 'X-Stream-Protocol-Version': 'portforward.k8s.io' }),
  post(`${pod}-not/exec?command=ls`, spdy),
  post(`${pod}/exec?command=ls`, { ...spdy, Authorization: 'Bearer rubbish' }),
  post(`${pod}/exec?command=ls`, {}),
  post(`${pod}/exec`, spdy),
  get('/api/v1/nowhere', webSocket('v5.channel.k8s.io')),
  get(`/api/v1/namespaces/${shared}/configmaps?watch=true&timeoutSeconds=1&resourceVersion=1`, {
    ...webSocket(''),
    'Sec-WebSocket-Protocol': undefined,
  }),
]
