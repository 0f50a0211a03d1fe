package predict

// Places is places.
var Places = places
