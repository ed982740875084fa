// Starts what the page has.

startFind();
startKeys();
startList();
if (byId("session")) {
  startCalls();
  startOutline();
  startHealth();
  startOnly();
  startWindows();
  addEventListener("hashchange", () => {
    const place = wantedPlace();
    if (place) goToEvent(place.event, place);
  });
}
startLive();
