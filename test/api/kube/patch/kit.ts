import type { JsonObject } from '../../../../src/api/kube/json.ts'
import { StatusError } from '../../../../src/api/kube/status.ts'
import { fixture as fixtureBytes } from '../../../kit/fixture.ts'

/** An object that a server sent. */
export const fixture = (name: string): JsonObject =>
  JSON.parse(fixtureBytes(`${name}.json`).toString()) as JsonObject

/** The StatusError that `run` throws; anything else is a failure of the test. */
export function failure(run: () => unknown): StatusError {
  try {
    run()
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
  throw new Error('it did not fail')
}
