/** An API server, or what stands before it, has answered otherwise than the hub needs it. */
export class UnusableAnswer extends Error {
  readonly code = 'UNUSABLE_ANSWER'
}
