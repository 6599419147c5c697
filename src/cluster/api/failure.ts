import { isObject, parseJson } from '../../api/kube/json.ts'
import { optionalTextAt, textAt } from '../../api/kube/json-at.ts'

/** An API server refused a request, or its answer is not one to the request. */
export class ApiFailure extends Error {
  readonly code = 'API_FAILURE'
  /** Of HTTP. */
  readonly status: number
  /** The Status's, where there is one. */
  readonly reason: string

  constructor(request: string, status: number, body: string) {
    const { reason, message } = statusIn(body)
    super(`${request} was answered ${status}${reason === '' ? '' : ` ${reason}`}: ${message}`)
    this.name = 'ApiFailure'
    this.status = status
    this.reason = reason
  }
}

function statusIn(body: string): { reason: string; message: string } {
  const status = parseJson(body)
  // Some other server's page.
  if (!isObject(status)) return { reason: '', message: body.slice(0, 200) }
  const message = optionalTextAt(status, 'message') ?? 'without a message'
  return { reason: textAt(status, 'reason'), message: message.slice(0, 1000) }
}

const hasStatus =
  (status: number) =>
  (error: unknown): boolean =>
    error instanceof ApiFailure && error.status === status

export const isNotFound = hasStatus(404)

/** 409 is the answer to a write of an older version, and to a create of an existing object. */
export const isConflict = hasStatus(409)

export const isGone = hasStatus(410)

const mostTries = 5

/** Runs `act`, which reads and then writes; again where another client wrote in between. */
export async function againOnConflict<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act()
    } catch (cause) {
      if (!isConflict(cause) || tries >= mostTries) throw cause
    }
  }
}
