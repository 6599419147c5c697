import type { ApiServer } from '../cluster/api/api-server.ts'
import type { ClusterClientConfig } from '../config/cluster-config.ts'
import { messageOf } from '../config/settings.ts'
import { programName, type ExitCode, type Terminal } from './command.ts'

/** How a command asks the API server. */
interface Asking {
  /** Command and subcommand, for messages. */
  readonly command: string
  readonly terminal: Terminal
  /** The exit code where nothing can be read. Default: 1. */
  readonly failed?: ExitCode
}

/** Calls `act` with a client of the API server; a failure becomes a sentence. */
export async function withApi(
  config: ClusterClientConfig,
  { command, terminal, failed = 1 }: Asking,
  act: (api: ApiServer) => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    const { connect } = await import('../cluster/api/connect.ts')
    await using connected = await connect(config)
    return await act(connected.api).catch((error: unknown) => {
      throw isUnreachable(error) ? unreachable(connected.server, error) : error
    })
  } catch (error) {
    terminal.err(`${programName(command)}: ${messageOf(error)}\n`)
    return failed
  }
}

/** Errors of the connection itself, by the codes of Node and undici. */
const isUnreachable = (error: unknown): error is Error =>
  error instanceof Error &&
  /^(E(CONN|HOST|NET|AI_|TIMEDOUT|NOTFOUND)|UND_ERR_CONNECT)/.test(codeOf(error))

const codeOf = (error: Error): string => String((error as NodeJS.ErrnoException).code ?? '')

/** A name with several addresses fails without a message of its own. */
const unreachable = (server: URL, cause: Error): Error =>
  new Error(
    `the API server ${server.origin} cannot be reached: ${cause.message || codeOf(cause)}; check the address in the kubeconfig, and that this host reaches it`,
    { cause },
  )
