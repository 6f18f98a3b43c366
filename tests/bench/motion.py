"""What moves in the browser: the reveal, and Home's drag."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Browser, Page
from served import ROOT, answers, line, opened, served

PRESS = """
() => {
  const board = gbFind('.board'), show = gbFind('.show');
  window.gbMoved = new Promise((done) => {
    show.addEventListener('click', () => {
      const start = performance.now();
      const look = () => {
        const other = board.querySelector('.row:not(.asked)');
        if (getComputedStyle(other).opacity < 1) done(performance.now() - start);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, {capture: true, once: true});
  });
}
"""
"""Milliseconds from the press of "Show what it does" to the first frame in which
another row has begun to fade."""

STROLL = """
(seconds) => new Promise((done) => {
  const hand = gbFind('.home-hand'), half = gbFind('.half');
  const { x, y, width } = half.getBoundingClientRect();
  const found = { frames: 0, settings: new Set() };
  const until = performance.now() + 1000 * seconds;
  const look = () => {
    found.frames += 1;
    found.settings.add(hand.getAttribute('aria-valuenow'));
    hand.dispatchEvent(new PointerEvent('pointermove', {
      clientX: x + width * (0.45 + 0.15 * Math.sin(found.frames / 20)),
      clientY: y, bubbles: true, composed: true, pointerId: 1,
    }));
    if (performance.now() < until) requestAnimationFrame(look);
    else done({ frames: found.frames, settings: found.settings.size });
  };
  requestAnimationFrame(look);
})
"""
"""Moves Home's held handle once a frame, as a hand does."""


def motion(browser: Browser, turns: int, seconds: float = 4) -> None:
    """The reveal's first movement; frames and requests of Home's drag."""
    with served(ROOT / "app.py") as address:
        answers(address)
        times = [pressed(browser, address) for _ in range(min(turns, 5))]
        line("reveal: press to first movement", np.array(times), 200, "aim 1.0")
        page = opened(browser, address, ".home-hand")
        hand = page.locator(".home-hand").bounding_box()
        assert hand is not None
        page.mouse.move(hand["x"] + hand["width"] / 2, hand["y"] + hand["height"] / 2)
        page.mouse.down()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        found = page.evaluate(STROLL, seconds)
        print(
            f"  Home's drag draws {found['frames'] / seconds:.0f} frames a second"
            f" (aim 50) over {found['settings']} settings and asks the server"
            f" {len(asked)} times (aim 0)"
        )
        page.context.close()


def pressed(browser: Browser, address: str) -> float:
    """Milliseconds to the reveal's first movement, for a new learner."""
    page: Page = opened(browser, f"{address}/partial_groups", ".show")
    page.locator(".choice").first.click()
    page.evaluate(PRESS)
    page.locator(".show").click()
    found = page.evaluate("window.gbMoved")
    page.context.close()
    return float(found)
