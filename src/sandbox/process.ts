import { isTrue } from '../api/request/request-info.ts'
import type { SeenRequest } from './requests.ts'
import type { ChannelStream } from './websocket.ts'

// Channels of exec and attach (apimachinery pkg/util/remotecommand).
const [stdin, stdout, stderr, failure, closing] = [0, 1, 2, 3, 255]

/**
 * Simulates a process. Without input: writes its command line and exits with the code in `exit
 * <n>`, else 0. With input: echoes it until the client closes it. A forwarded port echoes
 * everything.
 */
export function runProcess(stream: ChannelStream, seen: SeenRequest, protocol: string): void {
  if (protocol === 'v2.portforward.k8s.io' || seen.path.endsWith('/portforward')) {
    stream.onMessage = (channel, data) => stream.send(channel, data)
    return
  }
  const command = seen.query.getAll('command')
  if (isTrue(seen.query.get('stdin'))) {
    stream.onMessage = (channel, data) => {
      if (channel === stdin) stream.send(stdout, data)
      // In v5 a client ends its input with a message that names the channel.
      else if (channel === closing && data[0] === stdin) finish(stream, 0)
    }
    return
  }
  const [name = '', argument = ''] = command
  if (name === 'exit') {
    const code = /^[0-9]{1,3}$/.test(argument) ? Number(argument) : 1
    if (code !== 0) stream.send(stderr, Buffer.from(`exit ${code}\n`))
    finish(stream, code)
    return
  }
  stream.send(stdout, Buffer.from(`${command.join(' ')}\n`))
  finish(stream, 0)
}

function finish(stream: ChannelStream, code: number): void {
  const status =
    code === 0
      ? { metadata: {}, status: 'Success' }
      : {
          metadata: {},
          status: 'Failure',
          message: `command terminated with non-zero exit code: error executing command, exit code ${code}`,
          reason: 'NonZeroExitCode',
          details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
        }
  stream.send(failure, Buffer.from(JSON.stringify(status)))
  stream.close()
}
