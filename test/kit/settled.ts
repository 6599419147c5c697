import { turn } from '../../src/base/clock.ts'

/** Resolves when everything is listed, and nothing waits to be worked on. */
export async function settled(controller: {
  readonly depth: number | undefined
  readonly listed?: Promise<unknown>
}): Promise<void> {
  await controller.listed
  while (controller.depth !== 0) await turn()
}
